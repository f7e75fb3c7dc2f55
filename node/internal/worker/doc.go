// Package worker is the godwit.Worker of a node ([Worker]): a call is checked, what filters left of
// earlier pushes is added, what is here is served here, the rest goes through filters, others are
// asked for it, and the call is counted.
//
// It owns no lock and no goroutine: a Worker belongs to one goroutine of the training program, and
// panics where two use it at a time. A [Group] is the workers of a node, with one more by which a
// node that is closed pushes what filters left.
//
// It calls all rooms but ask, latch, liveness and receive. Nothing calls it but the program, and the node that
// makes it. It never takes a record of a peer itself: where a worker that waits reads the connection,
// room receive handles what comes. It decides nothing about keys.
package worker
