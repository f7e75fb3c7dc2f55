package linear

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/data/npy"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

func TestASingleWorkerRepeatsARunBitForBit(t *testing.T) {
	data := generated(t, func(s *libsvm.Spec) { s.Examples = 1000 })
	run := func(seed uint64) []float32 {
		c := DefaultConfig()
		c.Factors, c.Seed = 4, seed
		task := newTask(t, c, data)
		s := served(t, task.Tables(), 1, 1)
		if _, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 3}); err != nil {
			t.Fatal(err)
		}
		return traintest.Values(t, s.Workers(0)[0])
	}
	a, b, c := run(1), run(1), run(2)
	same := true
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			t.Fatalf("value %d is %v in one run and %v in the next", i, a[i], b[i])
		}
		same = same && a[i] == c[i]
	}
	if same {
		t.Error("another seed gives the same model")
	}
}

func TestNodesTrainOneModelTogether(t *testing.T) {
	data := generated(t, nil)
	for _, factors := range []int{0, 4} {
		c := DefaultConfig()
		c.Factors = factors
		task := newTask(t, c, data)
		reports, envs := trained[Batch](t, task, 3, train.Options{Epochs: 3, EvalEvery: 1})
		first, last := reports[0].Losses[0], reports[0].Losses[2]
		if first.Examples != int64(data.Train.Len()) || last.Mean() >= first.Mean() {
			t.Errorf("losses go from %+v to %+v, want %d examples and less loss", first, last, data.Train.Len())
		}
		for node, r := range reports {
			if fmt.Sprint(r) != fmt.Sprint(reports[0]) {
				t.Errorf("node %d reports %+v, node 0 %+v", node, r, reports[0])
			}
		}
		q := evaluatedBy(t, task.model, envs, data.Test)
		t.Logf("%d factors: %v", factors, q)
		if q.Examples != int64(data.Test.Len()) || q.Accuracy < 0.7 || q.AUC < 0.75 {
			t.Errorf("%d factors: %v", factors, q)
		}
	}
}

func TestEveryRowThatIsPulledIsAnnounced(t *testing.T) {
	data := generated(t, nil)
	c := DefaultConfig()
	c.Factors = 2
	task := newTask(t, c, data)
	s := served(t, task.Tables(), 1, 1)
	tr, err := task.Trainer(s.Workers(0)[0], train.Partition{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[godwit.Key]int{}
	var b train.Batch[Batch]
	for at := range traintest.Steps(tr, task.Chunks(), 1) {
		tr.Load(&b, at)
		once := map[godwit.Key]bool{}
		for _, k := range b.Keys {
			if once[k] {
				t.Fatalf("key %d stands twice in a batch", k)
			}
			once[k] = true
			seen[k]++
		}
	}
	// Bias, and weight and factor of each used feature.
	if want := 1 + 2*len(task.used); len(seen) != want {
		t.Errorf("%d keys are trained, want %d", len(seen), want)
	}
}

// A stronger penalty leaves fewer weights, and with none all used ones stay.
func TestL1DecidesHowManyWeightsAreZero(t *testing.T) {
	data := generated(t, nil)
	for _, rule := range Rules() {
		last := int64(math.MaxInt64)
		for _, l1 := range []float32{0, 3, 30} {
			c := DefaultConfig()
			c.Rule, c.L1 = rule, l1
			task := newTask(t, c, data)
			_, envs := trained[Batch](t, task, 2, train.Options{Epochs: 3})
			q := evaluatedBy(t, task.model, envs, data.Test)
			if l1 == 0 && q.NonZero < q.Used*99/100 || q.NonZero >= last || q.Used != int64(len(task.used)) {
				t.Errorf("%s with L1 = %v: %d of %d weights are not zero, %d with less", rule, l1, q.NonZero, q.Used, last)
			}
			last = q.NonZero
		}
	}
}

func TestSettingsOutOfRangeAreNamed(t *testing.T) {
	nan := float32(math.NaN())
	for field, change := range map[string]func(*Config){
		"Rule": func(c *Config) { c.Rule = "adam" }, "LR": func(c *Config) { c.LR = 0 }, "Beta": func(c *Config) { c.Beta = nan },
		"L1": func(c *Config) { c.L1 = -1 }, "L2": func(c *Config) { c.L2 = nan }, "Batch": func(c *Config) { c.Batch = 0 },
		"Factors": func(c *Config) { c.Factors = -1 }, "FactorLR": func(c *Config) { c.FactorLR = nan },
		"FactorL2": func(c *Config) { c.FactorL2 = -1 }, "FactorStd": func(c *Config) { c.FactorStd = float32(math.Inf(1)) },
	} {
		c := DefaultConfig()
		change(&c)
		if _, err := New(c, generated(t, nil)); err == nil || !strings.Contains(err.Error(), "Config."+field+" ") {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

func TestUnfitDataAreRefused(t *testing.T) {
	classes := []string{"-1", "1"}
	one := func(y float32, f uint32) *libsvm.Set {
		s := &libsvm.Set{Classes: classes}
		s.Append(y, []uint32{f}, []float32{1})
		return s
	}
	both := one(1, 3)
	both.Append(0, []uint32{1}, []float32{1})
	none, wide, broken := &libsvm.Set{Width: 4}, one(1, 9), &libsvm.Set{Labels: []float32{1}, Classes: classes}
	plain := &libsvm.Set{Width: 4, Classes: classes}
	plain.Append(1, nil, nil)
	plain.Append(0, nil, nil)
	values := &libsvm.Set{Width: 4}
	values.Append(2.5, []uint32{1}, []float32{1})
	for want, data := range map[string]*libsvm.Splits{
		"no examples to train":       {Train: none, Valid: none, Test: none},
		"have the same label":        {Train: one(1, 3), Valid: none, Test: none},
		"test has the classes []":    {Train: both, Valid: none, Test: values},
		"have no features":           {Train: plain, Valid: none, Test: none},
		"test has features up to 9":  {Train: both, Valid: none, Test: wide},
		"valid has features up to 9": {Train: both, Valid: wide, Test: none},
		"hash them":                  {Train: &libsvm.Set{Width: math.MaxInt}, Valid: none, Test: none},
		"train: libsvm":              {Train: broken, Valid: none, Test: none},
	} {
		if _, err := New(DefaultConfig(), data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	task := newTask(t, DefaultConfig(), &libsvm.Splits{Train: both, Valid: none, Test: none})
	env := train.Env{Workers: served(t, task.Tables(), 1, 1).Workers(0)}
	if _, err := task.EvaluateOn(t.Context(), &env, "wide", wide); err == nil || !strings.Contains(err.Error(), "up to 9") {
		t.Errorf("evaluating unknown features: %v", err)
	}
}

func TestModelsOfOtherTablesAreRefused(t *testing.T) {
	task := newTask(t, DefaultConfig(), generated(t, nil))
	for want, change := range map[string]func([]godwit.Table) []godwit.Table{
		"no table":   func(ts []godwit.Table) []godwit.Table { return ts[:1] },
		"501 rows":   func(ts []godwit.Table) []godwit.Table { ts[0].Rows++; return ts },
		"of 2 float": func(ts []godwit.Table) []godwit.Table { ts[1].Dim = 2; return ts },
	} {
		w := served(t, change(task.Tables()), 1, 1).Workers(0)[0]
		if _, err := task.Trainer(w, train.Partition{Count: 1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}

// arrayOf reads the values of a file.
func arrayOf(t *testing.T, path string) []float32 {
	t.Helper()
	r, err := npy.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, cols := r.Shape()
	x := make([]float32, rows*cols)
	if n, err := r.ReadRows(x); err != nil || n != rows {
		t.Fatalf("%s: %d of %d rows, %v", path, n, rows, err)
	}
	return x
}

func TestExportedWeightsAreThoseOfTheServer(t *testing.T) {
	data := generated(t, nil)
	c := DefaultConfig()
	c.Factors = 3
	task := newTask(t, c, data)
	_, envs := trained[Batch](t, task, 1, train.Options{Epochs: 1})
	w := envs[0].Workers[0]
	dir := filepath.Join(t.TempDir(), "new")
	if err := traintest.Export(t.Context(), task, w, dir); err != nil {
		t.Fatal(err)
	}
	all := traintest.Values(t, w)[7*3:] // behind the other table
	var got []float32
	for _, f := range []string{WeightFile, BiasFile, FactorFile} {
		got = append(got, arrayOf(t, filepath.Join(dir, f))...)
	}
	if fmt.Sprint(got) != fmt.Sprint(all) {
		t.Error("the files do not hold the values of the tables")
	}
	if err := traintest.Export(t.Context(), task, w, filepath.Join(dir, WeightFile)); err == nil {
		t.Error("a model was exported into a file")
	}
}
