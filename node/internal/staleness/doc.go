// Package staleness holds up reads of tables with bounded staleness until nothing is missing
// that must not be ([Bound], rules S1 to S4), changes the bounds while a run lasts, and keeps
// pulls that depend on a clock until it is there.
//
// It owns the bound's lock, which is taken before no other but a worker's operations, and no
// goroutine: workers wait by a [Waiter], and the node's rounds call it as a stage, at their begin
// and end. A bound is nil where no table has bounded staleness: nothing of this is kept or sent.
//
// It calls shards, links, operations and clocks, and rings the bell of the rounds. It calls
// nothing above it. It never reads a row, and never blocks a peer's records: a pull that comes
// too early is kept, not waited for.
package staleness
