// Package latch is the lock of a shard: a spin lock with a sequence number, so that reads need not
// take it. They are verified afterwards ([Latch.Word], [Latch.Unchanged]), where the processor and the race
// detector allow it ([Optimistic]).
//
// It owns nothing but the lock's words, has no goroutines, and calls only hints to the processor. It
// is held for the time of a few memory accesses, and never while something is waited for.
package latch
