// Package planner acts on what workers announce: it asks for the keys of intents when they
// become due, and gives them up when they end.
//
// It owns what each worker has announced and the window ahead of its clock within which intents
// are due, which follows the times that keys take to come ([Announcer]); and the node's one
// goroutine that acts ([Planner.Run]), with the bell that wakes it.
//
// Goroutines and locks: Run is one goroutine of the node, which ends with the node. Each
// worker's inbox has a lock, under which nothing else is taken. The plans and their timers belong
// to the planner's goroutine, the warning about a missing Advance to the worker's.
//
// It calls package intent, which decides when; package shards to want keys and not to, without
// holding the inbox; package host for time, for waiting and for what it may spend, which it
// shares with the sync rounds; and the workers' clocks. It calls nothing upwards, never touches
// a row, and never keeps a worker waiting.
package planner
