// Package protocol decides what happens to keys: who owns them, who replicates
// them, how requests find them, and how updates travel. It is pure: a [Shard]
// is a plain struct without goroutines, locks, clocks, sockets or randomness.
// Records and local calls go in; records to send come out through [Out]. The
// caller (package node) holds a lock round every call and carries the records.
//
// # What a node holds of a key
//
//	absent       nothing; perhaps a hint where it was seen
//	owner        the main copy; there is exactly one confirmed owner
//	frozen       the main copy that was: handed over, kept until released
//	tentative    the main copy that will be: received, not yet drained
//	placeholder  nothing yet, but asked for; this node's requests wait
//	replica      a copy that is kept in sync; draining, it is only readable
//
// # Routing
//
// A request (Pull, Push, Set, Localize) or a holder's word (Interest, Delta,
// End) is meant for the owner. It goes after the location hint twice at most,
// then to the home, which knows the owner. A frozen row passes it on to the
// new owner, marked Coming: the receiver has the row by then, and keeps the
// request until the move is over. A node that waits for a key keeps its own requests, but passes on its own
// question for the key when stale hints lead that back to it.
//
// # A move, x → y, home H
//
//	x: freeze      Transfer(epoch+1, row, holders) → y     the row stays at x
//	y: tentative   Claim(epoch) → H                        y's own workers go on
//	H: owner := y  Release → x                             all that H sent to x came before
//	x: forget      Drained → y                             all that x passed on came before
//	y: owner       serves what waited: first what x passed on, then the rest
//
// M1. A row exists at every moment in at least one of owner, tentative, frozen.
// M2. The home accepts only a greater epoch; Release and Drained count for the
// move of their epoch only.
// M3. y serves no other node before Drained, so requests of one node that go
// the same way are served in their order although the key moves.
// Within y, what y's workers asked for before goes first, too.
// M4. A key moves on only after Drained, so of one key one move is in flight.
//
// # Replicas
//
// A node that wants a copy sends Interest, once; the owner keeps the list of
// holders, which moves with the key. The replica remembers its row as of the
// last exchange (sub); what its workers changed since is row - sub. A round
// sends that difference as a Delta with a sequence number; there is at most
// one a key in flight. The owner adds it, once (R1), and answers in its own
// round with an Ack, or with a Refresh if somebody else changed the row too.
//
// R1. A Delta whose sequence number the row already contains is not added, and
// an End with such a number ends nothing: it is of a former replica.
// R2. A Refresh names the last Delta of the receiver that it contains; one
// still in flight, and what was not sent yet, go on top of it.
// A Refresh may leave state out ([godwit.Merger]): the replica's own stays.
// R3. A Refresh of an older version, or for a former replica, is ignored. After
// a move the first answer of the new owner is a full Refresh.
// R4. When the owner answers a request of a node that holds or awaits a copy,
// the node's Refresh goes first on the same path: an answer never shows
// more than the replica that is read next.
// R5. A replica that is no longer wanted drains: End carries its last updates,
// reads go on, writes wait, and Dropped removes it. So a node reads its own
// writes across the drop.
// R6. Before a move the old owner brings all holders up to date.
// R7. A Set at a replica goes to the owner as the replica's update in flight.
// The updates that it overwrites stay readable until the Refresh that contains
// it, and no later update of the replica can overtake it.
// R8. Copies meet as the update rule has it ([godwit.Merger]): what pushes did is
// packed where they were applied, and merged, in that order, into the owner's row,
// into the refresh that lacks it, and into the row that moves there.
//
// Where a table has a [godwit.Quantizer], a Delta may be rounded; what that takes
// off stays in the replica as an update that was not sent yet (rounding.go). A
// Delta that a flush waits for, and an End, are exact.
//
// # Beside the copies
//
// Where a rule has a query function ([godwit.Querier]), an answer is what that
// makes of the row; copies, moves and updates have the row itself. Scans (Scan,
// InUse, Scanned) ask homes for keys in use, wherever their rows are. Marks
// (SyncMark, SyncAck) and bounded staleness (Settled, PullAfter, Rebound) are of
// package node.
//
// # Operations that nobody waited for
//
// Of a key with one copy, and without hints, the operations of a worker take
// effect in the order in which it began them. With hints, or where the node may
// get a replica, that holds for operations whose predecessors were waited for:
// a read may miss the worker's own push that is still under way.
package protocol
