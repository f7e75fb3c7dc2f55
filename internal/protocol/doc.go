// Package protocol decides what happens to keys: who owns them, who replicates
// them, how requests find them, and how updates travel. It is pure: a [Shard]
// is a plain struct without goroutines, locks, clocks, sockets or randomness.
// Records and local calls go in; records to send come out through [Out]. The
// caller (package node) holds a lock during every call and carries the records.
//
// # What a node holds of a key
//
//	absent       nothing; perhaps a location hint
//	placeholder  nothing yet, but asked for; this node's requests wait
//	owner        the main copy; there is exactly one confirmed owner
//	tentative    the main copy at the new owner, until the old owner has drained
//	frozen       the former main copy: handed over, kept until released
//	replica      a copy that is kept in sync, in one of four states:
//	fresh        it contains no update that the owner lacks
//	dirty        it has updates that were not sent yet
//	in flight    an update or a Set was sent and is not acknowledged
//	draining     its last updates were sent; it can be read, writes wait
//
// Each change from one to another is one function in state.go, becomeOwner and so on.
// docs/life-of-a-key.md draws them, with the records that cause them. Side.go says which
// fields mean what in which state.
//
// # Routing
//
// Requests (Pull, Push, Set, Localize) and what a holder sends (Interest, Delta,
// End) are meant for the owner. Such a record follows location hints twice at most,
// then it goes to the home, which knows the owner. A node whose row is frozen passes it
// on to the new owner, marked Coming: the new owner is tentative by then, and keeps the
// record until the move is over. A node with a placeholder keeps its own requests, but
// passes on its own Localize or Interest when stale hints lead that back to it.
//
// # A move, x → y, home H
//
//	x: becomes frozen     Transfer(epoch+1, row, holders) → y   the row stays at x
//	y: becomes tentative  Claim(epoch) → H                      y's own workers go on
//	H: owner := y         Release → x                           everything that H sent to x came before
//	x: becomes absent     Drained → y                           everything that x passed on came before
//	y: becomes owner      serves what waited: first what x passed on, then the rest
//
// M1. At every moment at least one node has the row as owner, tentative or frozen.
// M2. The home accepts only a greater epoch; Release and Drained count for the
// move of their epoch only.
// M3. A tentative owner serves no other node before Drained, so requests of one node that
// go the same way are served in their order although the key moves.
// At that owner, earlier requests of its own workers go first, too.
// M4. Only a confirmed owner becomes frozen: a key moves on only after Drained, so one
// move of a key is in flight.
//
// # Replicas
//
// A node that wants a copy becomes a placeholder and sends Interest, once; the owner adds
// it to the key's holders, a list that moves with the key. The first Refresh makes the
// placeholder a fresh replica. A replica remembers the row as of the
// last exchange (sub); what its workers changed since is row - sub. A sync round
// sends that difference of a dirty replica as a Delta with a sequence number, and the
// replica is in flight until the answer; what its workers push meanwhile goes next.
// The owner adds the Delta, once (R1), and answers in its own
// round with an Ack, or with a Refresh if others changed the row too. A holder that rests (Out.Rests) gets an Ack at once, and the
// Refresh when it asks for all that is new.
//
// R1. A Delta whose sequence number the row already contains is not added, and
// an End with such a number ends nothing: it is from a former replica.
// R2. A Refresh names the receiver's last Delta that it contains. A Delta
// still in flight, and what was not sent yet, are put on top of the refreshed row.
// A Refresh may leave out the update rule's state ([godwit.Merger]): the replica keeps its own.
// R3. A Refresh of an older version, for a former replica, or without an update that was acknowledged, is ignored. After
// a move the first answer of the new owner is a full Refresh.
// R4. When the owner answers a request of a node that holds or awaits a replica,
// the node's Refresh goes first on the same path: an answer never shows
// more than a later read of the replica.
// R5. A replica that nobody wants drains, once no update is in flight, and no request of its node is on
// the network: End carries its last updates, reads go on, writes wait, and Dropped makes it absent. So a node reads its
// own writes across the drop.
// R6. Before an owner becomes frozen, it brings all holders up to date.
// R7. A Set at a replica goes to the owner as the replica's update in flight.
// The updates that it overwrites stay readable until the Refresh that contains
// the Set, and no later update of the replica can overtake it.
// R8. The update rule says how copies meet ([godwit.Merger]): the difference that pushes
// made is packed where they were applied, and merged, in that order, into the owner's row,
// into a refreshed row that lacks it, and into a row that moves there.
//
// Where a table has a [godwit.Quantizer], a Delta may be rounded; the remainder
// stays in the replica as an update that was not sent yet (rounding.go). A
// Delta that a flush waits for, and an End, are exact. Of tables that may be rounded
// where bytes bound the network, so are Deltas and Refreshes while the way is crowded
// (strained.go). The owner knows which holders have a rounded row, and sends them the exact
// one later.
//
// # Learned intents
//
// Where the policy learns (placement.LearningPolicy), a node also asks for what its workers
// access elsewhere again and again without an intent (learn.go, package intent).
//
// L1. Copies are asked for of relaxed tables only, by a Wish, which is an Interest that moves no key.
// L2. Of other tables, a node bids for a key. If it made nearly all changes of the row, and no
// node wants the key, the answer allows it to ask for the key by Localize.
//
// # Beside the copies
//
// Where a rule has a query function ([godwit.Querier]), an answer is its result for the
// row; copies, moves and updates have the row itself. Scans (Scan,
// InUse, Scanned) ask homes for the keys in use, wherever their rows are. Marks
// (SyncMark, SyncAck) and bounded staleness (Settled, PullAfter, Rebound) are the work of
// package node.
//
// # Operations that nobody waited for
//
// Operations of a worker on a key with one copy, and without hints, take
// effect in the order in which the worker began them. With hints, or where the node may
// get a replica, that holds only for operations whose predecessors were waited for:
// a read may miss the worker's own push that is still under way.
package protocol
