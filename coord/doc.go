// Package coord is how the nodes of a run agree: on who is a member and under
// which id, on barriers and small exchanges, on stopping early, and on the end
// of the run when a node is lost or fails.
//
// It is for events that happen a few times a second at most, never for keys or
// values: each barrier costs every node one write to the coordinator.
//
// # A run
//
// A run has a name ([Config].Run) and a fixed number of nodes. Nodes join until
// all are there; then the membership is sealed, and no other node is admitted
// while one of them still holds its place. Each node holds a [Session], and
// the life of a session is
//
//	join → Barrier, Exchange, … → Done (with Err) → Close
//
// The coordinator puts the messages of all nodes into one order, and every session
// receives them in that order. So if several things end a run, all nodes
// name the same one as the cause (a node's own failure, which it learns before
// it can tell, and a lost connection to the coordinator excepted), and of
// several reasons to stop all nodes see the same first one.
//
// # Loss
//
// The membership does not heal: if a member is lost, or reports that it failed,
// the run is over at all members, and each of them sees the cause in Err. An
// operator starts the run again, from a checkpoint where there is one.
//
// A node is lost when it does not renew its lease for [Config].TTL. It then
// stops itself as well: a session whose lease was not acknowledged for the TTL,
// counted from when the last acknowledged renewal was sent, is Done. So a node
// that was cut off is over no later than the others notice.
//
// # The same run again
//
// Nothing of a run stays behind when its members are gone, so the name can be
// used again: at once if all members left with Close, and otherwise when their
// leases have expired. A node that comes before that waits one TTL and a second
// for the remains to go and then fails with [ErrComplete].
//
// Until a run is sealed, a node that gave up or died frees its place for the
// next one to arrive; thus one node of a starting run may be restarted.
package coord
