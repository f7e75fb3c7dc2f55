package watch

import "sync/atomic"

// A Cause is what a worker waits for.
type Cause uint8

const (
	ForAnswers Cause = iota // of other nodes, and keys on their way here
	ForRoom                 // for more to be under way
	ForBound                // for workers, or nodes, that are behind
	ForWindow               // for own pushes
	ForBarrier              // for all workers
	ForSync                 // for what was pushed to be everywhere
	ForOthers               // for another worker of this node
	Causes
)

// String names the cause, as in metrics.
func (c Cause) String() string {
	return [Causes]string{"answers", "room", "bound", "window", "barrier", "sync", "others"}[c]
}

// Region names the waits of the cause in execution traces.
func (c Cause) Region() string {
	return [Causes]string{"wait: answers", "wait: room", "wait: bound", "wait: window", "wait: barrier", "wait: sync", "wait: others"}[c]
}

// Waits count how often one worker waited for something, and how long. Only the worker adds.
type Waits [Causes]struct{ n, nanos atomic.Uint64 }

// Add counts a wait.
func (w *Waits) Add(c Cause, nanos int64) {
	x := &w[c]
	x.n.Store(x.n.Load() + 1)
	x.nanos.Store(x.nanos.Load() + uint64(nanos))
}

// A Wait is how often workers waited for something, and how long.
type Wait struct{ N, Nanos uint64 }

// Sum adds the waits to others.
func (w *Waits) Sum(to *[Causes]Wait) {
	for i := range w {
		to[i].N += w[i].n.Load()
		to[i].Nanos += w[i].nanos.Load()
	}
}
