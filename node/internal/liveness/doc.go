// Package liveness is how nodes notice that a connection is dead, though both of its ends
// live and the coordinator hears from both: a switch that lost a route, a firewall,
// a process that keeps its lease and says nothing.
//
// Each end of a connection tells the other one how many bytes have arrived, in
// heartbeats. A peer owes an answer while some of what was sent to it has not
// arrived, as far as it says, or a heartbeat that asks for one is unanswered. A
// peer that owes an answer for the lease, while nothing moved either way, is
// suspect. Over an idle connection, one end asks now and then.
//
// Who suspects somebody tells node 0, the arbiter, which collects what others have
// to say for a moment and ends the run by a verdict that names who does not reach
// whom. If that does not come (among others, because the suspect is node 0), who
// suspects tells the coordinator itself.
//
// It owns what is known of the life of each connection, and the suspicions of this node
// and, at the arbiter, of all.
//
// Goroutines and locks: [Pulse.Run] is one goroutine of the node, which ends with the
// node or the run. Whoever takes the frames of a peer tells what came, without a lock.
// One lock is held for the suspicions, and nothing else is taken under it.
//
// It calls package host for time, and package link to send heartbeats and suspicions. It
// calls nothing upwards, and never ends a run: Run returns the verdict.
package liveness
