// Package planner acts on what workers announce: it asks for the keys of intents when they
// become due, and gives them up when they end.
//
// It owns what each worker has announced and the window ahead of its clock within which intents
// are due, which follows the times that keys take to come ([Announcer]); and the node's
// goroutine that acts ([Planner.Run]), with the bell that wakes it and the helpers of its team ([host.Team]).
//
// Goroutines and locks: Run is one goroutine of the node, which ends with the node. Where processors are free, helpers act
// on the intents of some of its workers. Each worker's inbox has a lock, under which nothing else is taken. The plan and the timer of a worker belong
// to whoever acts on its intents, the warning about a missing Advance to the worker's goroutine.
//
// It calls package intent, which decides when; package shards to want keys and not to, without
// holding the inbox; package host for time, for waiting and for what it may spend, which it
// shares with the sync rounds; and the workers' clocks. It calls nothing upwards, never touches
// a row, and never keeps a worker waiting.
package planner
