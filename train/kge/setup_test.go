package kge

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

// randomGraph is a graph without structure.
func randomGraph(entities, relations, n int, seed uint64) *triples.Graph {
	r := rand.New(rand.NewPCG(seed, 1))
	g := &triples.Graph{}
	for i := range entities {
		g.Entities = append(g.Entities, fmt.Sprint("e", i))
	}
	for i := range relations {
		g.Relations = append(g.Relations, fmt.Sprint("r", i))
	}
	draw := func(n int) []triples.Triple {
		var ts []triples.Triple
		for range n {
			ts = append(ts, triples.Triple{S: r.Uint32N(uint32(entities)), R: r.Uint32N(uint32(relations)), O: r.Uint32N(uint32(entities))})
		}
		return ts
	}
	g.Train, g.Valid, g.Test = draw(n), draw(n/5), draw(n/5)
	return g
}

// setup makes a task with a server of so many workers. A table in front moves
// the keys, so that keys and rows differ.
func setup(t testing.TB, c Config, g *triples.Graph, nodes, perNode int) (*Task, *traintest.Server) {
	t.Helper()
	task, err := New(c, g)
	if err != nil {
		t.Fatal(err)
	}
	tables := append([]godwit.Table{{Name: "other", Rows: 7, Dim: 3}}, task.Tables()...)
	m, err := godwit.NewModel(tables...)
	if err != nil {
		t.Fatal(err)
	}
	s := traintest.NewServer(m, nodes, perNode, c.Seed)
	s.Range = []traintest.KeyRange{{First: m.Key(1, 0), N: uint64(len(g.Entities))}}
	return task, s
}

// firstStep returns a trainer with the first batch loaded and pulled.
func firstStep(t testing.TB, task *Task, w godwit.Worker) (*trainer, step) {
	t.Helper()
	tr0, err := task.Trainer(w, train.Partition{Index: 0, Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	tr := tr0.(*trainer)
	var b train.Batch[Batch]
	tr.Load(&b, train.At{Epoch: 1})
	if b.Sample, err = w.PrepareSample(b.Sampler, b.Samples, 0, 1); err != nil {
		t.Fatal(err)
	}
	if err := tr.pull(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return tr, tr.split(&b.Data)
}
