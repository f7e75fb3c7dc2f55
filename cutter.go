package godwit

// A Cutter is a [Worker] of a node whose rows can be saved while workers change them. A cut
// is one step boundary of each worker of the run: the saved rows contain each push and Set
// that was issued before its worker's boundary once, and none that was issued after it.
//
// A worker crosses into a cut that was asked for at its next call of Advance or Barrier; where a table
// bounds staleness, at the first of them that brings it to the clock at which all cross, or to a barrier before. One
// that waits in Barrier, or has called Rest or Finish, or nothing at all, and nothing since, crosses at once:
// there it has a boundary already. So a worker must have pushed all of a step, or
// nothing, when it calls one of the four. A worker whose goroutine ends, or does something else for long,
// calls Rest or Finish first; else the cut waits for it.
type Cutter interface {
	Worker
	// OnCut has f called with the number of each cut when the worker crosses into it, so that
	// the program takes note of its position. f replaces the function of an earlier
	// call; nil is none. It runs within Advance or Barrier; or on another goroutine,
	// while the worker is within Barrier or at rest. It must be short, and not use the
	// worker.
	OnCut(f func(cut uint64))
	// Rest says that the worker does nothing until its next call.
	Rest()
}
