package experiment

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/protocol/placement"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/sim"
	"github.com/godwit-ps/godwit/train/kge"
)

// A Lab says what experiments are run on. Start from DefaultLab or QuickLab.
type Lab struct {
	// Data is the folder of a graph (see triples.Load); "" generates Graph.
	Data  string
	Graph triples.Spec
	KGE   kge.Config
	// Epochs is how many are trained, at least 1. Where there are two or more,
	// the first is left out of times and counts: it is the one that starts cold.
	Epochs int
	// Workers are those of each node.
	Workers int
	// Nodes are the numbers of nodes of "scaling"; the others take Most.
	Nodes []int
	Most  int
	// Accesses is how many steps each worker of "timing" takes.
	Accesses int
	// Exponents are the popularities that "skew" compares.
	Exponents []float64
	// Policies are those that are compared, beside ablations; nil is all.
	Policies []placement.Policy
	Seed     uint64
	// Step is the computation of a training step; 0 measures it.
	Step time.Duration
	// Progress is told before each run what it is; nil is fine.
	Progress func(string)
}

// DefaultLab is a sparse task: a step touches about 60 of 20,000
// entities, whose popularity follows Zipf's law with the exponent 1.1.
func DefaultLab() Lab {
	l := Lab{Graph: triples.DefaultSpec(), KGE: kge.DefaultConfig(), Epochs: 2, Workers: 8,
		Nodes: []int{1, 2, 4, 8, 16}, Most: 8, Accesses: 50_000,
		Exponents: []float64{0, 0.5, 0.8, 1.1, 1.5}, Seed: 1}
	l.Graph.Entities, l.Graph.Relations, l.Graph.Triples, l.Graph.Exponent = 20_000, 50, 100_000, 1.1
	l.KGE.Dim, l.KGE.Batch, l.KGE.Negatives = 64, 16, 32
	return l
}

// QuickLab is smaller in everything and takes seconds where DefaultLab takes
// minutes. Its figures show the direction only.
func QuickLab() Lab {
	l := DefaultLab()
	l.Workers, l.Nodes, l.Most, l.Accesses = 2, []int{1, 2, 4, 8}, 4, 3000
	l.Graph.Entities, l.Graph.Triples = 5000, 25_000
	l.KGE.Dim = 32
	l.Exponents = []float64{0, 1.1, 1.5}
	return l
}

func (l *Lab) check() error {
	switch {
	case l.Epochs < 1 || l.Workers < 1 || l.Most < 2 || l.Accesses < 1:
		return fmt.Errorf("experiment: %d epochs, %d workers a node, %d accesses, want at least 1 of each, and %d nodes, want at least 2", l.Epochs, l.Workers, l.Accesses, l.Most)
	case len(l.Nodes) == 0 || slices.Min(l.Nodes) < 1:
		return errors.New("experiment: scaling wants numbers of nodes, each at least 1")
	case len(l.Exponents) == 0:
		return errors.New("experiment: skew wants exponents")
	case l.Step < 0:
		return fmt.Errorf("experiment: a step of %v, want 0 (measure it) or more", l.Step)
	}
	return nil
}

// Compute is the cost model: Step by measurement, the others as
// docs/benchmarks.md has them, rounded up.
func (l *Lab) Compute() sim.Compute {
	return sim.Compute{Step: l.Step, Spread: 0.1, Key: 60 * time.Nanosecond, Frame: 3 * time.Microsecond,
		Record: 200 * time.Nanosecond, Round: 100 * time.Nanosecond}
}

// judged is how many triples quality is measured on.
const judged = 200

// A work is a task that is ready to be trained. It is immutable.
type work struct {
	task     *kge.Task
	model    *godwit.Model
	samplers []sampling.Spec
	about    string
}

func (l *Lab) work(exponent float64) (*work, error) {
	g, err := l.graph(exponent)
	if err != nil {
		return nil, err
	}
	about := fmt.Sprintf("%d entities, %d relations, %d triples to train", len(g.Entities), len(g.Relations), len(g.Train))
	// A simulated node ranks as slowly as a real one: a part of the triples has
	// to do, the same of every run.
	if len(g.Valid) > judged {
		few := make([]triples.Triple, 0, judged)
		for i := range judged {
			few = append(few, g.Valid[i*len(g.Valid)/judged])
		}
		g.Valid = few
	}
	kc := l.KGE
	kc.Seed = l.Seed
	task, err := kge.New(kc, g)
	if err != nil {
		return nil, err
	}
	model, err := godwit.NewModel(withHot(task, g)...)
	if err != nil {
		return nil, err
	}
	return &work{task: task, model: model, about: about, samplers: []sampling.Spec{{
		Name: "negatives", Table: 0, Dist: sampling.Uniform(uint64(len(g.Entities))), Scheme: sampling.Prepared{}}}}, nil
}

func (l *Lab) graph(exponent float64) (*triples.Graph, error) {
	if l.Data != "" {
		return triples.Load(l.Data)
	}
	spec := l.Graph
	spec.Exponent, spec.Seed = exponent, l.Seed
	return triples.Generate(spec)
}

// withHot tells the policy "nonuniform" how often rows stand in triples.
func withHot(task *kge.Task, g *triples.Graph) []godwit.Table {
	entities, relations := make([]float64, len(g.Entities)), make([]float64, len(g.Relations))
	for _, t := range g.Train {
		entities[t.S]++
		entities[t.O]++
		relations[t.R]++
	}
	tables := task.Tables()
	for i := range tables {
		f := entities
		if tables[i].Name == kge.RelationTable {
			f = relations
		}
		tables[i].Hot = func(row uint64) float64 { return f[row%uint64(len(f))] }
	}
	return tables
}
