// Package tick is the time of workers: their clocks, and what bounds on staleness
// make of them.
//
// It owns a [Clock] for each worker of a node, and the order of ticks ([Tick]).
//
// Goroutines and locks: none. The worker's goroutine alone changes its Clock; any
// goroutine reads the Clock's Now and Tick, without a lock. A [Pending] belongs to
// whoever holds the lock of what it is part of.
//
// It calls the words (package godwit) and package preempt, and nothing that is above
// it. It never waits, never reads the time of the machine, and sends nothing: whoever
// changes a Clock tells those who wait for it.
package tick
