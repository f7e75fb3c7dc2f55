// Package receive takes what peers send: a frame's way to its records' handlers. An [Inbound] is
// the frames of one peer; what a [Receiver] is part of, it hands them to.
//
// It owns no lock. An Inbound belongs to one goroutine, the reader of its connection
// ([Inbound.Serve]), or a worker that waits for an answer and reads in its place, one at a time.
// A goroutine of its own waits for a list of keys that was asked for.
//
// It calls all rooms that records are for: shards, operations, rounds, bounds, scans, cuts, questions (ask),
// liveness and the end of the run. Nobody waits in it: what
// cannot be answered yet is kept where it belongs. It decides nothing, and never closes a connection.
package receive
