package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/bench"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train/task"
)

// A Lab says what experiments are run on. Start from NewLab.
type Lab struct {
	// Task is what is trained. Where it generates its data, they have the
	// exponent Exponent and follow the seed.
	Task     task.Settings
	Exponent float64
	// Data is the file or folder of the data; "" generates them.
	Data string
	// Calls say how the programs access the server.
	Calls Calls
	// Epochs is how many are trained, at least 1. Where there are two or more,
	// the first is left out of the mean time of an epoch and of counts: it is the
	// one that starts cold.
	Epochs int
	// Evaluated is how many items of the data quality is measured on: a simulated
	// node evaluates as slowly as a real one, so a part has to do, the same of every
	// run.
	Evaluated int
	// Workers are those of each node.
	Workers int
	// Nodes are the numbers of nodes of "scaling"; the others take Most.
	Nodes []int
	Most  int
	// Keys is how many keys "timing" has, and Accesses how many steps each of
	// its workers takes.
	Keys, Accesses int
	// Linear is what "delay" and "filters" train, Blocks the number of blocks, and
	// Passes how many of them set the objective of "delay". It compares Delays, on
	// nodes whose steps vary by shares of Spreads, up and down.
	Linear         *task.Linear
	Blocks, Passes int
	Delays         []int
	Spreads        []float64
	// Sketch is what "sketch" counts with, and Batches how many items it adds at
	// once.
	Sketch  *task.Sketch
	Batches []int
	// Real, if set, runs the programs of "delay" and "sketch" on real nodes.
	Real Runner
	// Exponents are the popularities that "skew" compares.
	Exponents []float64
	// Policies are those that are compared, beside ablations; nil is all.
	Policies []placement.Policy
	Seed     uint64
	// Step is the computation of a training step; 0 measures it.
	Step time.Duration
	// Costs are what simulated nodes compute beside steps.
	Costs bench.Costs
	// Cores are those of a simulated node, which its workers share with everything
	// else that it does; 0: as many as it has workers.
	Cores int
	// Seeds is how many runs there are of everything, the first with Seed and each
	// other one with the next: figures are their medians. 0 is 1.
	Seeds int
	// Parallel is how many runs are simulated at a time; 0 is 1. It changes
	// nothing but the time and the memory that they take.
	Parallel int
	// Progress is told before each run what it is, one at a time; nil is fine.
	Progress func(string)

	// Budget is how many epochs "best" may train to find the best setting of a policy, for
	// a task and a number of nodes.
	Budget int

	sizes      []size          // of the tasks of "best"
	batchSteps []time.Duration // of the batches of "sketch", where they were measured
	telling    *sync.Mutex
}

func (l *Lab) progress(what string) {
	if l.Progress != nil {
		l.telling.Lock()
		defer l.telling.Unlock()
		l.Progress(what)
	}
}

// NewLab returns the lab of a choice: eight workers a node, up to 16 nodes. A
// quick one is smaller in everything and takes seconds where the other takes
// minutes; its figures show the direction only.
func NewLab(c Choice) (Lab, error) {
	sizes, err := c.sizes()
	if err != nil {
		return Lab{}, err
	}
	size := sizes[0]
	l := Lab{sizes: sizes, Budget: 32, Task: size.settings, Exponent: 1.1, Calls: c.Calls, Epochs: size.epochs, Evaluated: size.evaluated, Workers: 8,
		Nodes: []int{1, 2, 4, 8, 16}, Most: 8, Keys: 100_000, Accesses: 300_000,
		Exponents: []float64{0, 0.5, 0.8, 1.1, 1.5}, Seed: 1, Seeds: 3, Costs: MeasuredCosts(),
		Linear: task.DefaultLinear(), Blocks: 580, Passes: 10, Delays: []int{0, 1, 2, 4, 8, 16}, Spreads: []float64{0.3, 1},
		Sketch: task.DefaultSketch(), Batches: []int{100, 1000, 10_000}}
	l.Linear.L1 = 3
	l.Linear.Examples.Examples, l.Linear.Examples.Features, l.Linear.Examples.PerExample = 20_000, 10_000, 30
	if c.Quick {
		l.Linear.Examples.Examples, l.Linear.Examples.Features = 2000, 1000
		l.Blocks, l.Passes = 64, 5
		l.Sketch.Stream.Items, l.Batches = 50_000, []int{100, 1000}
		l.Workers, l.Nodes, l.Most, l.Accesses = 2, []int{1, 2, 4, 8}, 4, 3000
		l.Exponents = []float64{0, 1.1, 1.5}
		l.Seeds, l.Budget = 1, 12
	}
	if c.Search {
		l.Workers = max(l.Workers/2, 1)
	}
	return l, nil
}

// On sets the numbers of nodes: of experiments that compare several all of them, of
// others the largest. None leaves the lab as it is.
func (l *Lab) On(nodes []int) error {
	if len(nodes) == 0 {
		return nil
	}
	if slices.Min(nodes) < 1 || slices.Max(nodes) > godwit.MaxNodes {
		return fmt.Errorf("experiment: numbers of nodes %v, want each between 1 and %d", nodes, godwit.MaxNodes)
	}
	l.Nodes = slices.Compact(slices.Sorted(slices.Values(nodes)))
	l.Most = slices.Max(nodes)
	return nil
}

func (l *Lab) check() error {
	switch {
	case l.Task == nil:
		return errors.New("experiment: no task")
	case l.Epochs < 1 || l.Evaluated < 1 || l.Workers < 1 || l.Keys < 1 || l.Accesses < 1:
		return fmt.Errorf("experiment: %d epochs, %d items to evaluate on, %d workers a node, %d keys, %d accesses, want at least 1 of each", l.Epochs, l.Evaluated, l.Workers, l.Keys, l.Accesses)
	case l.Most < 2:
		return fmt.Errorf("experiment: %d nodes, want at least 2, which are compared with one", l.Most)
	case len(l.Nodes) == 0 || slices.Min(l.Nodes) < 1:
		return errors.New("experiment: scaling wants numbers of nodes, each at least 1")
	case len(l.Exponents) == 0:
		return errors.New("experiment: skew wants exponents")
	case l.Linear == nil || l.Blocks < 1 || l.Passes < 1 || len(l.Delays) == 0 || slices.Min(l.Delays) < 0 || len(l.Spreads) == 0 || slices.Min(l.Spreads) <= 0:
		return fmt.Errorf("experiment: %d blocks, %d passes, delays %v, spreads %v, want at least 1, 1, one of 0 or more and one over 0", l.Blocks, l.Passes, l.Delays, l.Spreads)
	case l.Sketch == nil || len(l.Batches) == 0 || slices.Min(l.Batches) < 1:
		return fmt.Errorf("experiment: batches of %v items, want some of at least 1", l.Batches)
	case l.Budget < 1:
		return fmt.Errorf("experiment: a budget of %d epochs a policy, want at least 1", l.Budget)
	case l.Seeds < 0 || l.Cores < 0:
		return fmt.Errorf("experiment: %d seeds, %d cores a node, want 0 (1, and one a worker) or more", l.Seeds, l.Cores)
	case l.Parallel < 0:
		return fmt.Errorf("experiment: %d runs at a time, want at least 1", l.Parallel)
	case l.Step < 0:
		return fmt.Errorf("experiment: a step of %v, want 0 (measure it) or more", l.Step)
	case !slices.Contains(AllCalls(), l.Calls):
		return fmt.Errorf("experiment: no calls %q, there are %v", l.Calls, AllCalls())
	}
	return l.Costs.Check()
}

// A work is a task that is ready to be trained. It is immutable.
type work struct {
	settings task.Settings
	task     task.Task
	model    *godwit.Model
	samplers []sampling.Spec
	exponent float64 // of generated data
	// staleness is that of the reads of all tables.
	staleness godwit.Bound
}

func (l *Lab) work(exponent float64) (*work, error) {
	s, err := l.settings(exponent)
	if err != nil {
		return nil, err
	}
	w, err := l.load(s)
	if err != nil {
		return nil, err
	}
	if _, ok := s.(task.Generated); ok && l.Data == "" {
		w.exponent = exponent
	}
	return w, nil
}

// load makes a task ready.
func (l *Lab) load(s task.Settings) (*work, error) { return l.bounded(s, godwit.Eventual) }

// bounded makes a task ready whose reads are of bounded staleness.
func (l *Lab) bounded(s task.Settings, staleness godwit.Bound) (*work, error) {
	t, err := s.Load(task.Setup{Data: l.Data, Seed: l.Seed, MaxEvalItems: l.Evaluated})
	if err != nil {
		return nil, err
	}
	tables := t.Tables()
	for i := range tables {
		tables[i].Staleness = staleness
	}
	m, err := godwit.NewModel(tables...)
	if err != nil {
		return nil, err
	}
	return &work{settings: s, task: t, model: m, samplers: t.Samplers(), staleness: staleness}, nil
}

// settings are the lab's for an exponent, which leave those of the lab alone.
func (l *Lab) settings(exponent float64) (task.Settings, error) {
	b, err := json.Marshal(l.Task)
	if err != nil {
		return nil, err
	}
	s, err := task.Decode(l.Task.Name(), b)
	if err != nil {
		return nil, err
	}
	if g, ok := s.(task.Generated); ok {
		g.Generate(exponent, l.Seed)
	}
	return s, nil
}

// sampledBy is the work with another scheme of its samplers.
func (w *work) sampledBy(s sampling.Scheme) *work {
	other := *w
	other.samplers = slices.Clone(w.samplers)
	for i := range other.samplers {
		other.samplers[i].Scheme = s
	}
	return &other
}
