package task

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/seedtest"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/kge"
	"github.com/godwit-ps/godwit/train/mf"
)

// small returns settings of a task that make some dozens of steps an epoch.
func small(name string) Settings {
	switch name {
	case "kge":
		s := DefaultKGE()
		s.Graph.Entities, s.Graph.Triples = 100, 4000
		s.Dim, s.Batch, s.Negatives, s.EntityDropout = 8, 50, 5, 0.2
		return s
	case "kge-cosine":
		s := small("kge").(*KGE)
		s.LRSchedule = kge.Cosine
		return s
	case "mf":
		s := DefaultMF()
		s.Dim, s.Order, s.Matrix.Cells = 4, mf.Plain, 20_000
		return s
	case "mf-columns":
		s := DefaultMF()
		s.Dim, s.Matrix.Cells = 4, 20_000
		return s
	case "mf-blocks":
		s := DefaultMF()
		s.Dim, s.Order, s.Matrix.Cells = 4, mf.Blocks, 20_000
		return s
	case "linear-blocks":
		s := DefaultLinear()
		s.Solver = Blocks
		return s
	case "w2v":
		s := DefaultW2V()
		s.Dim, s.Batch = 8, 5000
		return s
	case "lda":
		s := DefaultLDA()
		s.Topics = 8
		return s
	case "sketch":
		s := DefaultSketch()
		s.Stream.Items = 100_000
		return s
	}
	return DefaultLinear()
}

// served loads a task, and makes a server of one worker for it.
func served(t *testing.T, name string) (Task, *traintest.Server) {
	t.Helper()
	task, err := small(name).Load(Setup{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	m, err := godwit.NewModel(task.Tables()...)
	if err != nil {
		t.Fatal(err)
	}
	s := traintest.NewServer(m, 1, 1, 3)
	s.Range = s.Range[:0]
	for _, x := range task.Samplers() {
		s.Range = append(s.Range, traintest.KeyRange{First: m.Key(x.Table, 0), N: x.Dist.Rows()})
	}
	return task, s
}

// trained trains a task by one worker, and returns the rows and the report. It is cut at a clock, if
// that is not 0.
func trained(t *testing.T, name string, rows [][]float32, at *train.State, cut godwit.Clock) (end [][]float32, rep *train.Report, saved [][]float32, cutAt *train.State) {
	t.Helper()
	task, s := served(t, name)
	if rows != nil {
		s.SetRows(rows)
	}
	w := s.Workers(0)[0].(*traintest.Worker)
	w.Crosses, w.Cut = func() bool { return cut > 0 && w.Clock() == cut }, func() { saved = s.Rows() }
	env := train.Env{Workers: s.Workers(0), Begin: at, OnCut: func(_ uint64, p *train.State, err error) {
		if err != nil {
			t.Error(err)
		}
		cutAt = p
	}}
	var seen atomic.Int64
	var err error
	if rep, err = task.Train(t.Context(), env, train.Options{Epochs: 3, EvalEvery: 1}, &seen); err != nil {
		t.Fatal(err)
	}
	return s.Rows(), rep, saved, cutAt
}

func TestARunThatGoesOnFromACutEndsAsIfItHadNotBeenCut(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, name := range []string{"kge", "kge-cosine", "mf", "mf-columns", "mf-blocks", "w2v", "lda", "sketch", "linear", "linear-blocks"} {
		t.Run(name, func(t *testing.T) {
			want, whole, _, _ := trained(t, name, nil, nil, 0)
			steps := stepsOf(t, name)
			for range 3 {
				cut := godwit.Clock(1 + r.IntN(3*steps-1))
				_, _, rows, at := trained(t, name, nil, nil, cut)
				text, err := json.Marshal(at)
				if err != nil {
					t.Fatal(err)
				}
				at = new(train.State)
				if err := json.Unmarshal(text, at); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				got, rep, _, _ := trained(t, name, rows, at, 0)
				for k := range want {
					for i := range want[k] {
						if math.Float32bits(got[k][i]) != math.Float32bits(want[k][i]) {
							t.Fatalf("seed %d: cut at %d of %d steps, at %s: row %d is %v, want %v", seed, cut, 3*steps, text, k, got[k], want[k])
						}
					}
				}
				if fmt.Sprint(rep.Results) != fmt.Sprint(whole.Results) {
					t.Errorf("seed %d: cut at %d: the evaluations are %v, want %v", seed, cut, rep.Results, whole.Results)
				}
				for e := 1; e <= 3; e++ {
					g, w := rep.Losses[e-1], whole.Losses[e-1]
					if g.Examples != w.Examples || math.Abs(g.Sum-w.Sum) > 1e-9*math.Abs(w.Sum) {
						t.Errorf("seed %d: cut at %d: the loss of epoch %d is %v, want %v", seed, cut, e, g, w)
					}
				}
			}
		})
	}
}

// stepsOf is how many steps an epoch has.
func stepsOf(t *testing.T, name string) (n int) {
	t.Helper()
	task, s := served(t, name)
	var seen atomic.Int64
	if _, err := task.Train(t.Context(), train.Env{Workers: s.Workers(0)}, train.Options{Epochs: 1}, &seen); err != nil {
		t.Fatal(err)
	}
	return int(s.Workers(0)[0].Clock())
}
