package mf

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/npy"
	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

func TestAStepPullsAndPushesOnceWithinItsIntent(t *testing.T) {
	for _, order := range Orders() {
		set := randomSet(30, 20, 320, 2)
		set.Valid = set.Valid[:1]
		task, s := setup(t, small(order), set, 1, 2)
		run(t, task, s, 1, train.Options{Epochs: 2})
		w := s.Workers(0)[0].(*traintest.Worker)
		k, err := task.keys(w.Model())
		if err != nil {
			t.Fatal(err)
		}
		l, steps := newLoader(task, k, train.Partition{Count: 2}), 0
		for epoch := 1; epoch <= 2; epoch++ {
			for stage := range max(1, task.Stages(2)) {
				steps += l.steps(epoch, 2*stage)
			}
		}
		if order == Plain {
			steps = w.Counts.Pushes // chunks are divided as workers come
			if other := s.Workers(0)[1].(*traintest.Worker).Counts.Pushes; steps+other != 2*((320+task.cfg.Batch-1)/task.cfg.Batch) {
				t.Errorf("the workers made %d and %d steps", steps, other)
			}
		}
		// One of the two workers evaluates the only cell, and the one to train beside.
		if n := w.Counts; n.Pulls < steps || n.Pulls > steps+2 || n.Pushes != steps || n.Intents != steps || n.Uncovered > 4 {
			t.Errorf("%s: %d steps made %+v", order, steps, n)
		}
	}
}

func TestNodesEvaluateAModelTogetherAndAlike(t *testing.T) {
	const nodes = 3
	set := randomSet(30, 20, 300, 2)
	task, s := setup(t, small(Columns), set, nodes, 2)
	rows, cols := values(t, task, s.Workers(0)[0])
	slow := newTwin(t, task, rows, cols)
	for _, cells := range [][]ratings.Rating{set.Test, set.Test[:4], set.Test[:1]} {
		want := 0.0
		for _, r := range cells {
			e := float64(r.Value) - slow.predict(r)
			want += e * e
		}
		want = math.Sqrt(want / float64(len(cells)))
		x := traintest.NewExchange(nodes)
		var wg sync.WaitGroup
		for node := range nodes {
			wg.Go(func() {
				env := &train.Env{Workers: s.Workers(node), Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve}
				got, err := task.RMSE(t.Context(), env, "test", cells)
				if err != nil || math.Abs(got-want) > 1e-5*want {
					t.Errorf("node %d: the RMSE of %d cells is %v (%v), want %v", node, len(cells), got, err, want)
				}
			})
		}
		wg.Wait()
	}
}

func TestAnEvaluationMeasuresValidThenTrain(t *testing.T) {
	set := randomSet(30, 20, 300, 2)
	for _, c := range []struct {
		valid []ratings.Rating
		name  string
	}{{set.Valid, "valid RMSE"}, {nil, "test RMSE"}} {
		set.Valid = c.valid
		task, s := setup(t, small(Columns), set, 1, 1)
		ev, err := task.Evaluate(t.Context(), &train.Env{Workers: s.Workers(0)}, 1)
		if err != nil || !ev.LowerIsBetter || len(ev.Metrics) != 2 || ev.Metrics[0].Label() != c.name || ev.Metrics[1].Label() != "train RMSE" {
			t.Errorf("%+v, %v, want %s first", ev, err, c.name)
		}
	}
}

func TestTheProductOfTheExportedArraysIsThePrediction(t *testing.T) {
	for _, biased := range []bool{false, true} {
		set := randomSet(30, 20, 300, 2)
		set.RowNames, set.ColNames = make([]string, 30), make([]string, 20)
		for i := range set.RowNames {
			set.RowNames[i] = strings.Repeat("r", i+1)
		}
		for i := range set.ColNames {
			set.ColNames[i] = strings.Repeat("c", i+1)
		}
		c := small(Plain)
		c.Biased = biased
		task, s := setup(t, c, set, 1, 1)
		w := s.Workers(0)[0]
		dir := filepath.Join(t.TempDir(), "new", "folder")
		for range 2 { // the second time it replaces the files
			if err := traintest.Export(t.Context(), task, w, dir); err != nil {
				t.Fatal(err)
			}
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 5 {
			t.Errorf("the folder has %v (%v), want four files and model.json", files, err)
		}
		p, q := array(t, filepath.Join(dir, RowFile)), array(t, filepath.Join(dir, ColumnFile))
		names := lines(t, filepath.Join(dir, RowNamesFile))
		if !slices.Equal(names, set.RowNames) || !slices.Equal(lines(t, filepath.Join(dir, ColumnNamesFile)), set.ColNames) {
			t.Errorf("the rows are called %v", names)
		}
		rows, cols := values(t, task, w)
		slow := newTwin(t, task, rows, cols)
		for i := range set.Rows {
			for j := range set.Cols {
				want, got := slow.predict(ratings.Rating{Row: uint32(i), Col: uint32(j)}), 0.0
				for d := range p[i] {
					got += float64(p[i][d]) * float64(q[j][d])
				}
				if math.Abs(got-want) > 1e-5*max(1, math.Abs(want)) {
					t.Fatalf("biased %v: the product for cell %d, %d is %v, the prediction %v", biased, i, j, got, want)
				}
			}
		}
	}
}

func array(t *testing.T, path string) (rows [][]float32) {
	t.Helper()
	r, err := npy.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n, cols := r.Shape()
	for range n {
		x := make([]float32, cols)
		if _, err := r.ReadRows(x); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, x)
	}
	return rows
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

func TestBadSettingsAreNamed(t *testing.T) {
	set := randomSet(10, 8, 60, 6)
	nan := float32(math.NaN())
	for _, c := range []struct {
		set  func(*Config)
		want string
	}{
		{func(c *Config) { *c = Config{} }, "Dim"},
		{func(c *Config) { c.Order = "rows" }, "plain, columns, blocks"},
		{func(c *Config) { c.Batch = -1 }, "Batch"},
		{func(c *Config) { c.Batch = maxBatch + 1 }, "Batch"},
		{func(c *Config) { c.LR = -0.1 }, "LR"},
		{func(c *Config) { c.LR = nan }, "LR"},
		{func(c *Config) { c.L2 = -1 }, "L2"},
		{func(c *Config) { c.InitStd = nan }, "InitStd"},
		{func(c *Config) { c.Rule = "adagrad" }, "BoldDriver"},
		{func(c *Config) { c.Rule, c.BoldDriver = "newton", false }, "Rule"},
	} {
		cfg := DefaultConfig()
		c.set(&cfg)
		if _, err := New(cfg, set); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one that mentions %q", cfg, err, c.want)
		}
	}
}

func TestEachRuleHasALearningRateUnlessOneIsGiven(t *testing.T) {
	set := randomSet(10, 8, 60, 6)
	for _, x := range []struct {
		rule     string
		lr, want float32
	}{
		{SGD, 0, 0.01}, {"adagrad", 0, 0.1}, {"ftrl", 0, 0.1}, {"adam", 0, 0.01}, {"momentum", 0, 0.001}, {"proxsgd", 0, 0.005}, {SGD, 0.02, 0.02},
	} {
		c := DefaultConfig()
		c.Rule, c.LR, c.BoldDriver = x.rule, x.lr, false
		task, err := New(c, set)
		if err != nil {
			t.Fatal(err)
		}
		c.LR = x.want
		rule, err := c.rule()
		if err != nil {
			t.Fatal(err)
		}
		if task.rule != rule || task.cfg.LR != x.want {
			t.Errorf("%s with LR %v has the rule %+v at %v, want %+v at %v", x.rule, x.lr, task.rule, task.cfg.LR, rule, x.want)
		}
	}
}

func TestBadMatricesAreNamed(t *testing.T) {
	one := []ratings.Rating{{Value: 1}}
	for want, s := range map[string]ratings.Set{
		"0 rows":               {},
		"no cells to train":    {Rows: 1, Cols: 1, Test: one},
		"no cells to evaluate": {Rows: 1, Cols: 1, Train: one},
		"cell 0 of test":       {Rows: 1, Cols: 1, Train: one, Test: []ratings.Rating{{Row: 1}}},
	} {
		if _, err := New(DefaultConfig(), &s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one that mentions %q", s, err, want)
		}
	}
}

func TestAModelWithoutTheTasksTablesIsRefused(t *testing.T) {
	task, _ := setup(t, small(Plain), randomSet(10, 8, 60, 6), 1, 1)
	m, err := godwit.NewModel(task.Tables()[:1]...)
	if err != nil {
		t.Fatal(err)
	}
	w := traintest.NewServer(m, 1, 1, 1).Workers(0)[0]
	if _, err := task.Trainer(w, train.Partition{Count: 1}); err == nil || !strings.Contains(err.Error(), `no table "column"`) {
		t.Errorf("a trainer: %v", err)
	}
	if _, err := task.RMSE(t.Context(), &train.Env{Workers: []godwit.Worker{w}}, "test", task.set.Test); err == nil || !strings.Contains(err.Error(), `no table "column"`) {
		t.Errorf("an evaluation: %v", err)
	}
	if err := traintest.Export(t.Context(), task, w, t.TempDir()); err == nil || !strings.Contains(err.Error(), `no table "column"`) {
		t.Errorf("an export: %v", err)
	}
}

func TestARunThatDivergesSaysSo(t *testing.T) {
	c := small(Plain)
	c.LR = 100
	task, s := setup(t, c, randomSet(30, 20, 300, 2), 1, 1)
	_, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 50})
	if err == nil || !strings.Contains(err.Error(), "lower the learning rate") {
		t.Errorf("the error is %v", err)
	}
}
