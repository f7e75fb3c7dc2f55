package linear

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

// longTailed are examples with a few features each of which most stand in one
// example or two, as names of people or pages do, and say nothing. They are the
// same every time, as a file that each node reads.
func longTailed(t *testing.T, least int) (data *libsvm.Splits, left int) {
	t.Helper()
	data = generated(t, func(s *libsvm.Spec) { s.Examples = 3000 })
	r := rand.New(rand.NewPCG(6, 0))
	for _, set := range []**libsvm.Set{&data.Train, &data.Valid, &data.Test} {
		long := &libsvm.Set{Width: 250_000, Classes: (*set).Classes}
		for i := range (*set).Len() {
			y, fs, vs := (*set).Row(i)
			fs, vs = slices.Clone(fs), slices.Clone(vs)
			for k := range 8 {
				fs, vs = append(fs, uint32(500+30_000*k+r.IntN(30_000))), append(vs, 1)
			}
			long.Append(y, fs, vs)
		}
		*set = long
	}
	left, err := data.KeepFrequent(least)
	if err != nil {
		t.Fatal(err)
	}
	return data, left
}

// inUse returns the features whose weights anybody has touched.
func inUse(t *testing.T, task interface{ Tables() []godwit.Table }, w godwit.Worker) map[uint32]bool {
	t.Helper()
	const first = 7 // behind the other table
	used := map[uint32]bool{}
	for k, err := range w.Scan(t.Context(), first, first+godwit.Key(task.Tables()[0].Rows), godwit.NoNode) {
		if err != nil {
			t.Fatal(err)
		}
		used[uint32(k-first)] = true
	}
	return used
}

func TestFeaturesThatAreTooRareHaveNoRowsAndTheOthersLearnAsMuch(t *testing.T) {
	const least = 5
	all, _ := longTailed(t, 1)
	count := map[uint32]int{}
	for _, f := range all.Train.Features {
		count[f]++
	}
	frequent, left := longTailed(t, least)
	if left < len(all.Train.Features)/10 {
		t.Fatalf("%d of %d values are left out: the test is vacuous", left, len(all.Train.Features))
	}
	c := DefaultConfig()
	c.Factors = 2
	run := func(data *libsvm.Splits) (Quality, map[uint32]bool, []float32) {
		task := newTask(t, c, data)
		_, envs := trained[Batch](t, task, 3, train.Options{Epochs: 4, EvalEvery: 2})
		q := evaluatedBy(t, task.model, envs, data.Test)
		w := envs[0].Workers[0]
		return q, inUse(t, task, w), traintest.Values(t, w)[7*3:]
	}
	before, rows, _ := run(all)
	after, fewer, values := run(frequent)
	t.Logf("all: %v, %d rows in use; %d times at least: %v, %d rows in use", before, len(rows), least, after, len(fewer))
	wrong := 0
	for f, n := range count {
		switch {
		case n >= least && !fewer[f]:
			t.Errorf("feature %d stands in %d examples and has no row", f, n)
		case n < least && fewer[f]:
			wrong++
		case n < least && values[f] != 0:
			t.Errorf("feature %d stands in %d examples and has the weight %v", f, n, values[f])
		}
	}
	if 50*wrong > len(count) || 2*len(fewer) > len(rows) {
		t.Errorf("%d rows in use, %d without leaving out; %d of them of rare features", len(fewer), len(rows), wrong)
	}
	// Of 600 examples the AUC has an error of 0.013, and workers of three nodes do not repeat what they learned.
	if after.AUC < before.AUC-0.04 || before.AUC < 0.7 {
		t.Errorf("%v, with all features %v", after, before)
	}
}

// Every node reads the data and leaves features out by itself.
func TestNodesAgreeOnWhichFeaturesAreTooRare(t *testing.T) {
	c := DefaultBlockConfig()
	c.Blocks = 5
	run := func(nodes int) (string, []float32, map[uint32]bool) {
		data, left := longTailed(t, 5)
		if left == 0 {
			t.Fatal("nothing is left out: the test is vacuous")
		}
		task := newBlocks(t, c, data)
		_, envs := trained[Turn](t, task, nodes, train.Options{Epochs: 5})
		w := envs[0].Workers[0]
		used := inUse(t, task, w)
		rows := task.Tables()[0].Rows
		return task.Fingerprint(), traintest.Values(t, w)[7*3:][:weightDim*rows], used
	}
	name, one, rows := run(1)
	again, three, same := run(3)
	if name != again || len(rows) != len(same) || len(rows) == 0 {
		t.Errorf("one node trains %d features of %s, three %d of %s", len(rows), name, len(same), again)
	}
	learned := 0
	for i := 0; i < len(one); i += weightDim {
		f := uint32(i / weightDim)
		if rows[f] != same[f] || math.Abs(float64(one[i]-three[i])) > 1e-4 {
			t.Fatalf("feature %d has the weight %v on one node and %v on three", f, one[i], three[i])
		}
		if one[i] != 0 {
			learned++
		}
	}
	all, _ := longTailed(t, 1)
	other := newBlocks(t, c, all)
	if learned == 0 || other.Fingerprint() == name {
		t.Errorf("%d weights are not zero; with all features the task is %s", learned, other.Fingerprint())
	}
}
