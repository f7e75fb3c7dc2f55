package worker

import "fmt"

// A single notices that two goroutines use a worker at the same time, which would
// lose what one of them waits for and leave it waiting for ever. It is a plain
// flag, as Go's maps have one: it costs a store, misses what does not overlap, and
// gives the race detector something to see.
type single struct {
	inside bool
	parked bool // inside at rest: since Rest or Finish, or from the beginning
}

// enter begins a call of a worker, leave ends it.
func (w *Worker) enter() {
	if w.inside {
		w.again()
	}
	w.inside = true
}

func (w *Worker) leave() { w.inside = false }

// again begins the first call after a rest.
func (w *Worker) again() {
	if !w.parked {
		w.misused()
	}
	w.parked = false
	w.party.Unpark()
}

func (w *Worker) misused() {
	panic(fmt.Sprintf("godwit: %v is used by two goroutines at the same time: a worker belongs to one; start the node with a worker for each", w.id))
}
