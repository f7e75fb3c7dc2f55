// Package cut is the cuts of a node ([Cuts]; [godwit.Cutter] says what a cut is), and the restoring of rows
// ([Rows.Restore]).
//
// A cut has four stages, which nodes tell each other by [wire.Cut]. Asked: the node's
// workers cross at their next step boundaries ([Party]), or, where a table bounds staleness, all at one tick
// (meeting.go); those that are parked, because they
// wait in a barrier or have finished, are crossed for. Settled: they all have, and what they
// changed before is in main copies. When all nodes have settled, the rows are handed
// over, while workers change them: package protocol keeps copies (its cut.go). Saved: that
// is done, for rows that are here. When all nodes have saved, rows that came since are handed over.
// Ended: the next cut may be asked for when all nodes have ended.
//
// It owns one goroutine, which [Cuts.Run] is, the lock of the Cuts, which is taken under that of a shard
// or a queue, and the gate of its workers. Under the gate a function of the program runs that takes note
// of the worker's position, and the clock of a worker goes to its next era. The lock telling, over what it sends, is
// taken before these. While rows are handed over, one more goroutine tells peers whether workers are to wait.
//
// It calls the shards, links and operations, WaitSync of package round, and, upwards, what has a worker cross and what
// pushes what filters left. It never stops a worker, but for one that is faster than the words of
// the nodes where a tick is agreed on, or changes rows faster than a sink takes them (room.go), nor decides about keys.
package cut
