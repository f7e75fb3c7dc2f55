package train

import "github.com/godwit-ps/godwit"

// An Aged is a [Task] whose workers must not make too many steps without hearing of each other. Steps whose length does not follow from
// what was pushed before, as those of plain gradient descent, all go too far where each of them was made without the others. Where an
// epoch takes longer than some sync rounds, it costs nothing: nobody waits.
type Aged interface {
	// MaxAge is for how many epochs a worker on one of so many nodes goes on while nothing comes from another node,
	// such as 0.25; 0: for any number. Run tells the workers ([godwit.Worker].BoundAge), by the steps that each makes in an epoch.
	MaxAge(nodes int) float64
}

// MaxAgeOf returns that of a task, of whatever batches, on so many nodes: 0 if it is not an [Aged], or its workers wait for each other anyway.
func MaxAgeOf(task any, nodes int) float64 {
	if a, ok := task.(Aged); ok && !InLockstep(task) {
		return a.MaxAge(nodes)
	}
	return 0
}

// boundAge tells a worker, which takes a chunk of so many steps, how many it may make while nothing comes from others: those of so
// many chunks, which are about equally long; 0: any number.
func boundAge(w godwit.Worker, chunks float64, steps int) {
	if chunks > 0 && steps > 0 {
		w.BoundAge(max(1, godwit.Clock(chunks*float64(steps))))
	}
}
