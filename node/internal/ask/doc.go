// Package ask carries questions of a node to another, and the answers, for what runs beside the
// rows: what is asked is bytes, and who asks and who answers know what they mean.
//
// It owns the questions of this node that are not answered yet, and those of other nodes that
// came before somebody answers them here ([Asks.Serve]): a few of each node.
//
// Goroutines and locks: no goroutine. Whoever takes frames of a peer has its question answered,
// or hands over the answer, at once; so these functions do not wait, and take no lock under
// which something is asked. The room's own lock is taken alone.
//
// It sends by package link, where questions and answers leave before the records that wait, in their own order, and waits by package host. It never reads rows, and never knows
// what is asked.
package ask
