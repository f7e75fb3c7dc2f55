package train

import (
	"math"

	"github.com/godwit-ps/godwit"
)

// An Aged is a [Task] whose workers must not make too many steps without hearing of each other. Steps whose length does not follow from
// what was pushed before, as those of plain gradient descent, all go too far where each of them was made without the others. Where an
// epoch takes longer than some sync rounds, it costs nothing: nobody waits.
type Aged interface {
	// MaxAge is for how many epochs a worker goes on while nothing comes from another node, times the square root of the
	// number of nodes, such as 0.5; 0: for any number. Run tells the workers ([godwit.Worker].BoundAge), by the steps that each makes in an epoch.
	MaxAge() float64
}

// MaxAgeOf returns that of a task, of whatever batches: 0 if it is not an [Aged], or its workers wait for each other anyway.
func MaxAgeOf(task any) float64 {
	if a, ok := task.(Aged); ok && !InLockstep(task) {
		return a.MaxAge()
	}
	return 0
}

// ageOn returns for how many epochs a worker of a task goes on while nothing comes from another of so many nodes. With more nodes it is
// fewer, as measured: docs/decisions/106-bounded-age.md.
func ageOn(task any, nodes int) float64 { return MaxAgeOf(task) / math.Sqrt(float64(nodes)) }

// boundAge tells a worker, which takes a chunk of so many steps, how many it may make while nothing comes from others: those of so
// many chunks, which are about equally long; 0: any number.
func boundAge(w godwit.Worker, chunks float64, steps int) {
	if chunks > 0 && steps > 0 {
		w.BoundAge(max(1, godwit.Clock(chunks*float64(steps))))
	}
}
