// Package run is how a node meets the others, and how its run ends: well, when all nodes have
// come to the end ([Run.Leave]), or because the session, a peer or this node failed.
//
// It owns the word by which the end of the run is told, here and to the others; what is known
// of the nodes that have come to the end, and of the connections that may still bring
// something; and the barrier at which a node's workers meet before the node goes to the
// coordinator for all of them ([Barrier]).
//
// Goroutines and locks: [Run.Watch] is one goroutine of the node, which ends with the node or
// the session. Fail begins a short one that tells the others, as its caller may hold a shard's
// lock; a Barrier has one while the node waits at the coordinator; [Run.Meet] has one until it
// returns. Locks: one for the goodbyes, one for a barrier's workers, and one for each of its
// rounds. Under them nothing else is locked, and nothing waited for.
//
// It calls package host to wait, the connections to meet, and package link to say goodbye.
// Four things of the node's session cross upwards: [Session], its Barrier and its Exchange, given as functions to
// Leave and to Barrier, and in a [Mesh] the secret. It never touches a row or an operation:
// whoever waits hears of the end by the host's Done.
package run
