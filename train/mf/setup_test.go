package mf

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

// randomSet is a matrix without structure, whose first row and first column have
// no cells to train.
func randomSet(rows, cols, n int, seed uint64) *ratings.Set {
	r := rand.New(rand.NewPCG(seed, 1))
	draw := func(n int) []ratings.Rating {
		var cells []ratings.Rating
		for range n {
			cells = append(cells, ratings.Rating{Row: 1 + r.Uint32N(uint32(rows-1)), Col: 1 + r.Uint32N(uint32(cols-1)), Value: float32(r.NormFloat64())})
		}
		return cells
	}
	return &ratings.Set{Rows: rows, Cols: cols, Train: draw(n), Valid: draw(n / 5), Test: draw(n / 5)}
}

// small are settings for small matrices.
func small(order string) Config {
	c := DefaultConfig()
	c.Dim, c.Order, c.Batch, c.InitStd, c.LR = 5, order, 16, 0.5, 0.01
	return c
}

// setup makes a task with a server of so many workers. A table in front moves
// the keys, so that keys and rows differ.
func setup(t testing.TB, c Config, set *ratings.Set, nodes, perNode int) (*Task, *traintest.Server) {
	t.Helper()
	task, err := New(c, set)
	if err != nil {
		t.Fatal(err)
	}
	m, err := godwit.NewModel(append([]godwit.Table{{Name: "other", Rows: 7, Dim: 3}}, task.Tables()...)...)
	if err != nil {
		t.Fatal(err)
	}
	return task, traintest.NewServer(m, nodes, perNode, c.Seed)
}

// run trains on all nodes and returns node 0's report.
func run(t testing.TB, task *Task, s *traintest.Server, nodes int, o train.Options) *train.Report {
	t.Helper()
	x := traintest.NewExchange(nodes)
	var first *train.Report
	var wg sync.WaitGroup
	for node := range nodes {
		wg.Go(func() {
			env := train.Env{Workers: s.Workers(node), Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve}
			rep, err := train.Run(t.Context(), env, task, o)
			if err != nil {
				t.Errorf("node %d: %v", node, err)
			}
			if node == 0 {
				first = rep
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return first
}

// values are all values of the task's tables.
func values(t testing.TB, task *Task, w godwit.Worker) (rows, cols [][]float32) {
	t.Helper()
	k, err := task.keys(w.Model())
	if err != nil {
		t.Fatal(err)
	}
	read := func(first godwit.Key, n int) (all [][]float32) {
		for i := range n {
			x := make([]float32, task.cfg.width())
			if err := w.Pull(t.Context(), []godwit.Key{first + godwit.Key(i)}, x); err != nil {
				t.Fatal(err)
			}
			all = append(all, x)
		}
		return all
	}
	return read(k.row, task.set.Rows), read(k.column, task.set.Cols)
}
