package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit/train/task"
)

// A size is how large the experiments on a task are.
type size struct {
	settings task.Settings
	epochs   int
}

// A Choice is what decides the sizes of a lab.
type Choice struct {
	Task  string // one of Tasks
	Quick bool   // small, to see the direction
	Calls Calls
}

// sizes are those of each task. The full ones take minutes of one processor for
// each simulated run, and train some hundred steps of each of 64 workers in an
// epoch.
var sizes = map[string]func(Choice) size{
	"kge": kgeSize,
}

// Tasks lists the tasks that experiments can run.
func Tasks() []string {
	var names []string
	for _, name := range task.Names() {
		if sizes[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

func (c Choice) size() (size, error) {
	of := sizes[c.Task]
	switch {
	case of == nil:
		return size{}, fmt.Errorf("experiment: no task %q, there are %s", c.Task, strings.Join(Tasks(), ", "))
	case !slices.Contains(AllCalls(), c.Calls):
		return size{}, fmt.Errorf("experiment: no calls %q, there are %v", c.Calls, AllCalls())
	}
	return of(c), nil
}

// kgeSize is a sparse task: 64 workers of 40 rows a step are at work on a
// twentieth of the entities.
func kgeSize(c Choice) size {
	s := task.DefaultKGE()
	s.Graph.Entities, s.Graph.Relations, s.Graph.Triples, s.Graph.Exponent = 50_000, 50, 300_000, 1.1
	s.Dim, s.Batch, s.Negatives = 32, 8, 24
	z := size{s, 10}
	if c.Quick {
		s.Graph.Entities, s.Graph.Triples = 5000, 25_000
		z.epochs = 3
	}
	if c.Calls == Single {
		// A step of the programs for Lapse, NuPS and AdaPM is a triple and its
		// negatives, a hundred for each end with NuPS.
		s.Batch, s.Negatives = 1, 100
	}
	return z
}
