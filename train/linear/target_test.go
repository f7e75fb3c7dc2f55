package linear

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/train"
)

// generatedFor are examples of so many classes, or, if there are none, of values in
// units of 1000 around 50,000.
func generatedFor(t testing.TB, classes int) *libsvm.Splits {
	data := generated(t, func(s *libsvm.Spec) { s.Classes, s.Noise = classes, 0 })
	for _, set := range []*libsvm.Set{data.Train, data.Valid, data.Test} {
		for i, y := range set.Labels {
			if classes == 0 {
				set.Labels[i] = 50_000 + 1000*y
			}
		}
	}
	return data
}

func TestClassesAndValuesAreLearned(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		for _, rule := range Rules() {
			c := DefaultConfig()
			c.Rule, c.L1 = rule, 0.1

			data := generatedFor(t, 6)
			reports, _ := trained(t, newTask(t, c, data), nodes, train.Options{Epochs: 8, EvalEvery: 1})
			ms := reports[0].Results[len(reports[0].Results)-1].Metrics
			if names := []string{ms[0].Name, ms[1].Name, ms[2].Name}; !slices.Equal(names, []string{"log loss", "accuracy", "macro F1"}) {
				t.Fatalf("the figures are %v", ms)
			}
			if ms[0].Value > 1 || ms[1].Value < 0.6 || ms[2].Value < 0.55 {
				t.Errorf("%d nodes, %s, 6 classes: %v; a guess has a loss of %.2f", nodes, rule, ms, math.Log(6))
			}

			data = generatedFor(t, 0)
			task := newTask(t, c, data)
			reports, _ = trained(t, task, nodes, train.Options{Epochs: 8, EvalEvery: 1})
			ms = reports[0].Results[len(reports[0].Results)-1].Metrics
			if ms[0].Name != "RMSE" || ms[1].Name != "MAE" || ms[2].Name != "R2" {
				t.Fatalf("the figures are %v", ms)
			}
			if math.Abs(task.center-50_000) > 2000 || task.scale < 1000 {
				t.Errorf("values are around %v in units of %v", task.center, task.scale)
			}
			if ms[0].Value > task.scale/3 || ms[1].Value > ms[0].Value || ms[2].Value < 0.9 {
				t.Errorf("%d nodes, %s, values: %v, with a deviation of %v", nodes, rule, ms, task.scale)
			}
			if l := reports[0].Losses; l[len(l)-1].Mean() > task.scale*task.scale/10 || l[0].Mean() < task.scale*task.scale/1000 {
				t.Errorf("losses %v are not in the units of the labels, squared", l)
			}
		}
	}
}

// Values that are far from 0 are learned without a bias, too, as well as that goes.
func TestValuesWithoutABiasAreAroundZero(t *testing.T) {
	c := DefaultConfig()
	c.Bias = false
	task := newTask(t, c, generatedFor(t, 0))
	if task.center != 0 || task.scale < 50_000 {
		t.Errorf("values are around %v in units of %v", task.center, task.scale)
	}
}

// A slow twin of the figures.
func TestFiguresOfClassesAreThoseOfASlowTwin(t *testing.T) {
	labels := []int{0, 1, 2, 2, 1, 0, 2, 2}
	said := []int{0, 1, 2, 1, 1, 2, 0, 2}
	c, tg := newCounts(4), target{classes: 4, scale: 1}
	want := 0.0
	for i, y := range labels {
		margins := make([]float32, 4)
		margins[said[i]] = 1
		p := math.Exp(float64(margins[y])) / (math.E + 3)
		want -= math.Log(p)
		c.count(&tg, float32(y), margins)
	}
	if math.Abs(c.sums[loss]-want) > 1e-5 || c.sums[right] != 5 || c.sums[examples] != 8 {
		t.Errorf("sums %v, want a loss of %v, 5 of 8 right", c.sums, want)
	}
	// F1 of 0: one of 2 and 2; of 1: two of 2 and 3; of 2: two of 4 and 3; 3 is nowhere.
	if f, want := macroF1(c.sums[ofClasses:]), (2*1/4.0+2*2/5.0+2*2/7.0)/4; math.Abs(f-want) > 1e-9 {
		t.Errorf("macro F1 is %v, want %v", f, want)
	}
}

// exported writes a trained model to a folder.
func exported(t *testing.T, task *Task, w godwit.Worker) export.Source {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if err := export.Write(dir, "linear", func(s *export.Set) error {
		s.Model.Classes = task.data.Train.Classes
		return task.Export(t.Context(), w, s)
	}); err != nil {
		t.Fatal(err)
	}
	src, err := export.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestExportsAreInTheUnitsOfTheLabelsAndBeginAnotherModel(t *testing.T) {
	for _, factors := range []int{0, 4} {
		for _, classes := range []int{0, 2, 5} {
			c := DefaultConfig()
			c.Factors = factors
			data := generatedFor(t, classes)
			task := newTask(t, c, data)
			_, envs := trained(t, task, 1, train.Options{Epochs: 3})
			w := envs[0].Workers[0]
			n := task.Outputs()
			want := make([]float32, n*data.Test.Len())
			if err := task.Predict(t.Context(), w, data.Test, want); err != nil {
				t.Fatal(err)
			}
			src := exported(t, task, w)

			// By hand, from the files.
			weights, err1 := src.Array(WeightFile)
			bias, err2 := src.Array(BiasFile)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			for i := range data.Test.Len() {
				if factors > 0 {
					break
				}
				_, fs, xs := data.Test.Row(i)
				m := slices.Clone(bias.Row(0))
				for k, f := range fs {
					for o, x := range weights.Row(int(f)) {
						m[o] += x * xs[k]
					}
				}
				(&target{classes: classes, scale: 1}).predict(m)
				for o, x := range m {
					if math.Abs(float64(x-want[i*n+o])) > 1e-3*max(1, math.Abs(float64(x))) {
						t.Fatalf("%d classes, example %d: the export says %v, the model %v", classes, i, m, want[i*n:(i+1)*n])
					}
				}
			}

			// Another model of values in other units begins with it.
			if classes == 0 {
				data = generatedFor(t, 0)
				for i := range data.Train.Labels {
					data.Train.Labels[i] *= 1 + 0.1*float32(i%2)
				}
			}
			next := newTask(t, c, data)
			rows, err := next.Import(src)
			if err != nil {
				t.Fatal(err)
			}
			w = served(t, next.Tables(), 1, 1).Workers(0)[0]
			if _, err := train.SetRows(t.Context(), w, slices.Insert(rows, 0, nil)); err != nil { // nothing of the table in front
				t.Fatal(err)
			}
			got := make([]float32, len(want))
			if err := next.Predict(t.Context(), w, data.Test, got); err != nil {
				t.Fatal(err)
			}
			for i, x := range got {
				if math.Abs(float64(x-want[i])) > 2e-3*max(1, math.Abs(float64(want[i]))) {
					t.Fatalf("%d classes, %d factors: prediction %d is %v, before the export %v", classes, factors, i, x, want[i])
				}
			}
			// What does not fit is refused.
			other := newTask(t, c, generatedFor(t, 3))
			if _, err := other.Import(src); err == nil || !strings.Contains(err.Error(), "does not fit") {
				t.Errorf("a model of %d classes begins one of 3: %v", classes, err)
			}
		}
	}
}

func TestBlocksRefuseOtherTargets(t *testing.T) {
	for classes, want := range map[int]string{0: "labels are values", 4: "labels are 4 classes"} {
		if _, err := NewBlocks(DefaultBlockConfig(), generatedFor(t, classes)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d classes: %v", classes, err)
		}
	}
}

func TestTooLongFactorsForManyClassesAreRefused(t *testing.T) {
	c := DefaultConfig()
	c.Factors = 1024
	if _, err := New(c, generatedFor(t, 40)); err == nil || !strings.Contains(err.Error(), "40 classes") {
		t.Errorf("error %v", err)
	}
}

func TestRealNumbersOfPeopleAreLearnedAsValues(t *testing.T) {
	dir := os.Getenv("GODWIT_DATA")
	if dir == "" {
		t.Skip("GODWIT_DATA is not set: it names a folder with linear/a9a")
	}
	data, err := libsvm.LoadSplits(filepath.Join(dir, "linear", "a9a", "a9a.gz"), libsvm.Options{Target: libsvm.ToValues}, libsvm.Share{Valid: 20})
	if err != nil {
		t.Fatal(err)
	}
	reports, _ := trained(t, newTask(t, DefaultConfig(), data), 1, train.Options{Epochs: 2, EvalEvery: 1})
	ms := reports[0].Results[1].Metrics
	t.Log(ms)
	if ms[2].Name != "R2" || ms[2].Value < 0.3 {
		t.Errorf("labels of 1 and -1 as values: %v", ms)
	}
}

// The labels of a test need not have the mean of those to train, around which they are summed up.
func TestTheExplainedVarianceIsOfTheLabelsThemselves(t *testing.T) {
	m := &model{target: target{scale: 1, center: 10}}
	c := newCounts(0)
	for label, said := range map[float32]float32{11: 1, 12: 2, 13: 4} { // margins are around the center
		c.count(&m.target, label, []float32{said})
	}
	q, err := m.together(t.Context(), &train.Env{}, "test", &c)
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 - 1/2.; math.Abs(q.R2-want) > 1e-9 || math.Abs(q.RMSE-math.Sqrt(1./3)) > 1e-9 || math.Abs(q.MAE-1./3) > 1e-9 {
		t.Errorf("R2 %v, RMSE %v, MAE %v, want %v, √⅓ and ⅓", q.R2, q.RMSE, q.MAE, want)
	}
}
