package kge

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/train"
)

func TestTheRateFallsAsTheScheduleSays(t *testing.T) {
	for _, x := range []struct {
		schedule string
		want     []float64 // of each epoch
	}{
		{Constant, []float64{0.5, 0.5, 0.5, 0.5}},
		{"", []float64{0.5, 0.5, 0.5, 0.5}},
		{Linear, []float64{0.5, 0.375, 0.25, 0.125}},
		{Cosine, []float64{0.5, 0.5 * (1 + math.Sqrt2/2) / 2, 0.25, 0.5 * (1 - math.Sqrt2/2) / 2}},
	} {
		c := DefaultConfig()
		c.LR, c.LRSchedule = 0.5, x.schedule
		for i, want := range x.want {
			if got := c.rateOf(i+1, len(x.want)); math.Abs(float64(got)-want) > 1e-6 {
				t.Errorf("%s: epoch %d has the rate %v, want %v", x.schedule, i+1, got, want)
			}
		}
		if got, want := c.rateOf(9, 4), c.rateOf(4, 4); got != want || got <= 0 {
			t.Errorf("%s: an epoch beyond the last has the rate %v, want the last one's %v", x.schedule, got, want)
		}
	}
}

// listening is a worker that notes the rates of its pushes.
type listening struct {
	godwit.Worker
	dims  func(k godwit.Key) int // floats of a row
	rates []float32              // of each push
	mixed bool                   // a push has two
}

func (w *listening) PushAsync(ctx context.Context, keys []godwit.Key, push []float32) (godwit.Handle, error) {
	at := 0
	for i, k := range keys {
		at += w.dims(k)
		if i == 0 {
			w.rates = append(w.rates, push[at-1])
		}
		w.mixed = w.mixed || push[at-1] != w.rates[len(w.rates)-1]
	}
	return w.Worker.PushAsync(ctx, keys, push)
}

func TestEveryPushOfAnEpochBringsItsRate(t *testing.T) {
	g := randomGraph(100, 5, 700, 4)
	c := DefaultConfig()
	c.Model, c.Dim, c.Batch, c.Negatives, c.LR, c.LRSchedule = "rotate", 16, 64, 20, 0.5, Linear
	task, s := setup(t, c, g, 1, 1)
	w := &listening{Worker: s.Workers(0)[0]}
	w.dims = func(k godwit.Key) int {
		i, _ := w.Model().Locate(k)
		return w.Model().Table(i).Dim
	}
	if _, err := train.Run(t.Context(), train.Env{Workers: []godwit.Worker{w}}, task, train.Options{Epochs: 4}); err != nil {
		t.Fatal(err)
	}
	if got := slices.Compact(w.rates); w.mixed || !slices.Equal(got, []float32{0.5, 0.375, 0.25, 0.125}) {
		t.Errorf("the rates are %v (two in a push: %v), want 0.5, 0.375, 0.25 and 0.125", got, w.mixed)
	}
}

// trainedBits trains and returns the embeddings: the rows without what is behind them.
func trainedBits(t *testing.T, c Config, epochs int) (vals []float32, extra []float32) {
	t.Helper()
	task, s := setup(t, c, randomGraph(100, 5, 700, 4), 1, 1)
	w := s.Workers(0)[0]
	if _, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: epochs}); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < w.Model().Tables(); i++ { // the first is not the task's
		x := w.Model().Table(i)
		for row := range x.Rows {
			v := make([]float32, x.Dim)
			if err := w.Pull(t.Context(), []godwit.Key{w.Model().Key(i, row)}, v); err != nil {
				t.Fatal(err)
			}
			n := x.Dim - task.extra
			vals, extra = append(vals, v[:n]...), append(extra, v[n:]...)
		}
	}
	return vals, extra
}

// The first epoch has the full rate, so a run of one epoch tells whether rules that take
// the rate with each push step as those that have it.
func TestAScheduledRunOfOneEpochIsTheConstantOneBitForBit(t *testing.T) {
	for _, rule := range []string{"sgd", "adagrad", "rowadagrad", "adam"} {
		c := DefaultConfig()
		c.Dim, c.Batch, c.Negatives, c.LR, c.Rule, c.EntityDropout = 16, 64, 20, 0.03, rule, 0.2
		want, none := trainedBits(t, c, 1)
		if len(none) > 0 {
			t.Fatalf("%s: rows have floats behind their embeddings without a schedule", rule)
		}
		for _, schedule := range []string{Linear, Cosine} {
			c.LRSchedule = schedule
			got, extra := trainedBits(t, c, 1)
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("%s, %s: value %d is %v, want %v", rule, schedule, i, got[i], want[i])
				}
			}
			if slices.ContainsFunc(extra, func(x float32) bool { return x != 0 }) {
				t.Errorf("%s, %s: the floats of the rate are %v, want 0", rule, schedule, extra)
			}
			longer, _ := trainedBits(t, c, 2)
			c.LRSchedule = Constant
			if constant, _ := trainedBits(t, c, 2); slices.Equal(longer, constant) {
				t.Errorf("%s: two epochs of %s are those of a constant rate", rule, schedule)
			}
		}
	}
}

func TestARuleWithoutARateOfItsPushesIsRefusedWithASchedule(t *testing.T) {
	g := randomGraph(20, 2, 50, 1)
	for _, rule := range optim.GradientRules() {
		c := DefaultConfig()
		c.Rule, c.LR = rule, 0.1
		if _, err := New(c, g); err != nil {
			t.Errorf("%s with a constant rate: %v", rule, err)
		}
		c.LRSchedule = Linear
		_, err := New(c, g)
		able := slices.Contains([]string{"sgd", "adagrad", "rowadagrad", "adam"}, rule)
		if able != (err == nil) {
			t.Errorf("%s with a linear schedule: error %v", rule, err)
		}
		if err != nil && !strings.Contains(err.Error(), "only adagrad, adam, rowadagrad, sgd") {
			t.Errorf("%s: error %v, want one that lists the rules", rule, err)
		}
	}
}

func TestFiltersThatMayChangeTheRateAreRefused(t *testing.T) {
	for _, x := range []struct {
		filters string
		refused bool
	}{{"sparse", false}, {"skip(p=0.5)", true}, {"bf16", true}} {
		c := DefaultConfig()
		c.Dim = 8
		for _, schedule := range []string{Constant, Linear} {
			c.LRSchedule = schedule
			task, err := New(c, randomGraph(20, 2, 50, 1))
			if err != nil {
				t.Fatal(err)
			}
			fs, err := filter.Parse(x.filters)
			if err != nil {
				t.Fatal(err)
			}
			m, err := godwit.NewModel(filter.On(task.Tables(), fs...)...)
			if err == nil {
				_, err = task.Trainer(idle{m: m}, train.Partition{Count: 1, Epochs: 3})
			}
			if refused := x.refused && schedule != Constant; refused != (err != nil) {
				t.Errorf("%s with the schedule %s: error %v", x.filters, schedule, err)
			}
		}
	}
}

// Export, ranking, scores and a model to begin with are of embeddings, without the float
// of the rate.
func TestAScheduledModelIsExportedAndTakenOverAsAnyOther(t *testing.T) {
	g := randomGraph(30, 3, 80, 1)
	c := DefaultConfig()
	c.Model, c.Dim, c.InitStd, c.LRSchedule, c.Reciprocal = "rescal", 5, 0.5, Cosine, true
	task, s := setup(t, c, g, 1, 1)
	env := train.Env{Workers: s.Workers(0)}
	if _, err := train.Run(t.Context(), env, task, train.Options{Epochs: 3}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := export.Write(dir, "kge", func(s *export.Set) error { return task.Export(t.Context(), env.Workers[0], s) }); err != nil {
		t.Fatal(err)
	}
	quality := func(task *Task, env train.Env) (Quality, []float32, [][]Scored) {
		q, err := task.Rank(t.Context(), &env, "test", g.Test)
		if err != nil {
			t.Fatal(err)
		}
		scores := make([]float32, len(g.Test))
		if err := task.Score(t.Context(), env.Workers[0], g.Test, scores); err != nil {
			t.Fatal(err)
		}
		best, err := task.Complete(t.Context(), env.Workers[0], []Query{{Entity: 3, Relation: 1}, {Entity: 4, Relation: 2, Subjects: true}}, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		return q, scores, best
	}
	want, wantScores, wantBest := quality(task, env)
	for _, schedule := range []string{Constant, Linear} { // of the task that takes it over
		c.LRSchedule = schedule
		next, s := setup(t, c, g, 1, 1)
		src, err := export.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := next.Import(src)
		if err != nil {
			t.Fatal(err)
		}
		w := s.Workers(0)[0]
		if _, err := train.SetRows(t.Context(), w, append([]train.Rows{nil}, rows...)); err != nil {
			t.Fatal(err)
		}
		got, scores, best := quality(next, train.Env{Workers: s.Workers(0)})
		if got != want || !slices.Equal(scores, wantScores) || len(best) != 2 || !slices.Equal(best[0], wantBest[0]) || !slices.Equal(best[1], wantBest[1]) {
			t.Errorf("taken over with the schedule %s it has %v, want %v", schedule, got, want)
		}
	}
	if r, err := Reload(c, g); err != nil || r.extra != 0 {
		t.Errorf("a trained model to be read has %d floats behind its embeddings (%v), want none", r.extra, err)
	}
}
