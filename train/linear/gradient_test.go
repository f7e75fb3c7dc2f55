//go:build !race

package linear

// These tests are one goroutine's arithmetic, which the race detector would
// make slow for nothing.

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/train"
)

// loaded returns a trainer with a batch whose values are random.
func loaded(t *testing.T, c Config, classes int) (*trainer, *Batch) {
	t.Helper()
	data := generated(t, func(s *libsvm.Spec) {
		s.Examples, s.Features, s.PerExample, s.Relevant, s.Classes = 120, 15, 4, 5, classes
	})
	r := rand.New(rand.NewPCG(5, 6))
	for i := range data.Train.Values {
		data.Train.Values[i] = float32(r.NormFloat64())
	}
	task := newTask(t, c, data)
	w := served(t, task.Tables(), 1, 1).Workers(0)[0]
	x, err := task.Trainer(w, train.Partition{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	tr := x.(*trainer)
	var b train.Batch[Batch]
	tr.Load(&b, train.At{Epoch: 1})
	n := tr.floats(&b.Data)
	if want, err := w.Model().Floats(b.Keys); err != nil || want != n {
		t.Fatalf("the batch has %d floats, its keys %d (%v)", n, want, err)
	}
	tr.vals, tr.grads = make([]float32, n), make([]float32, n)
	for i := range tr.vals {
		tr.vals[i] = float32(r.NormFloat64()) * 0.5
	}
	return tr, &b.Data
}

func TestBatchesHaveTheExamplesOfTheSet(t *testing.T) {
	data := generated(t, func(s *libsvm.Spec) { s.Examples, s.Features, s.PerExample, s.Relevant = 300, 60, 5, 5 })
	for _, last := range []float32{1, 0.5} { // all values are 1, and all but one
		set := data.Train
		for i := range set.Values {
			set.Values[i] = 1
		}
		set.Values[len(set.Values)-1] = last
		task := newTask(t, DefaultConfig(), data)
		k := keys{bias: 1000, weight: 2000}
		g, b := newGatherer(task.model, k, set), Batch{}
		for e := set.Len() - 1; e > 20; e -= 20 {
			examples := []int32{int32(e), int32(e - 20), int32(e - 1), int32(e)}
			ks := g.gather(&b, nil, examples)
			if len(ks) != 1+b.features || ks[0] != 1000 {
				t.Fatalf("%d features have the keys %d", b.features, ks)
			}
			from := int32(0)
			for i, e := range examples {
				y, fs, xs := set.Row(int(e))
				ids, values := b.local[from:b.ends[i]], b.values[from:b.ends[i]]
				from = b.ends[i]
				if b.labels[i] != y || !slices.Equal(values, xs) || len(ids) != len(fs) {
					t.Fatalf("example %d has label %v and values %v, want %v and %v", e, b.labels[i], values, y, xs)
				}
				for n, id := range ids {
					if got := ks[1+id] - 2000; got != godwit.Key(fs[n]) {
						t.Fatalf("example %d has feature %d, want %d", e, got, fs[n])
					}
				}
			}
		}
	}
}

func TestExamplesMayHaveNoFeatures(t *testing.T) {
	set := &libsvm.Set{Classes: []string{"-1", "1"}}
	set.Append(0, nil, nil)
	set.Append(1, []uint32{2, 4}, []float32{1, 3})
	set.Append(1, nil, nil)
	task := newTask(t, DefaultConfig(), &libsvm.Splits{Train: set, Valid: &libsvm.Set{Classes: set.Classes}, Test: &libsvm.Set{Classes: set.Classes}})
	g, b := newGatherer(task.model, keys{}, set), Batch{}
	g.gather(&b, nil, []int32{0, 2, 1, 0})
	for e, want := range []int{0, 0, 2, 0} {
		if ids, xs := b.example(e); len(ids) != want || len(xs) != want {
			t.Errorf("example %d of the batch has %d features and %d values, want %d", e, len(ids), len(xs), want)
		}
	}
}

func TestGradientsAgreeWithFiniteDifferences(t *testing.T) {
	for _, classes := range []int{2, 0, 4} {
		gradientsAgree(t, classes)
	}
}

func gradientsAgree(t *testing.T, classes int) {
	for _, factors := range []int{0, 3} {
		for _, bias := range []bool{false, true} {
			c := DefaultConfig()
			c.Factors, c.Bias, c.Batch, c.FactorL2 = factors, bias, together+6, 0.3
			tr, b := loaded(t, c, classes)
			// FactorL2 counts for each example that a factor is in.
			objective := func() float64 {
				l := tr.gradient(b) / (tr.m.scale * tr.m.scale)
				n := tr.m.factorDim()
				for _, id := range b.local {
					for k := range n {
						v := float64(tr.vals[tr.factorsAt(b)+int(id)*n+k])
						l += 0.3 / 2 * v * v
					}
				}
				return l
			}
			objective()
			want := append([]float32(nil), tr.grads...)
			const h = 1e-2
			for i, x := range tr.vals {
				tr.vals[i] = x + h
				up := objective()
				tr.vals[i] = x - h
				down := objective()
				tr.vals[i] = x
				// The margins are float32, and the third derivative is not nothing.
				if got := (up - down) / (2 * h); math.Abs(got-float64(want[i])) > 5e-3*max(1, math.Abs(got)) {
					t.Fatalf("%d classes, %d factors, bias %v, element %d: the gradient is %v, the difference quotient %v", classes, factors, bias, i, want[i], got)
				}
			}
		}
	}
}

func TestPairsAreThoseOfAllFeatures(t *testing.T) {
	c := DefaultConfig()
	c.Factors, c.Batch = 5, 20
	tr, b := loaded(t, c, 2)
	v := tr.vals[tr.factorsAt(b):]
	tr.forward(b, tr.vals, func(first int, labels, _ []float32) {
		for e := first; e < first+len(labels); e++ {
			ids, xs := b.example(e)
			want := 0.0
			for i := range ids {
				for j := range i {
					for k := range 5 {
						want += float64(v[int(ids[i])*5+k]) * float64(v[int(ids[j])*5+k]) * float64(xs[i]) * float64(xs[j])
					}
				}
			}
			margins := []float32{0}
			tr.pairs(v, ids, xs, margins, make([]float32, 5))
			if got := float64(margins[0]); math.Abs(got-want) > 1e-4*max(1, math.Abs(want)) {
				t.Errorf("example %d: pairs add up to %v, want %v", e, got, want)
			}
		}
	})
}

func TestLossAndSlopeHoldForExtremeMargins(t *testing.T) {
	for _, m := range []float32{-1e30, -100, -31, -29, -1, 0, 1, 29, 31, 100, 1e30} {
		for _, y := range []bool{false, true} {
			l, g := logLoss(y, m)
			wrong := y != (m > 0)
			if math.IsNaN(l) || l < 0 || math.IsNaN(float64(g)) || math.Abs(float64(g)) > 1 || y != (g <= 0) && g != 0 {
				t.Errorf("margin %v, positive %v: loss %v, slope %v", m, y, l, g)
			}
			at := []float32{m}
			if ls := logLosses([]float32{map[bool]float32{false: 0, true: 1}[y]}, at); math.Abs(ls-l) > 1e-6*max(1, l) || math.Abs(float64(at[0]-g)) > 1e-6 {
				t.Errorf("margin %v, positive %v: among others the loss is %v and the slope %v, want %v and %v", m, y, ls, at[0], l, g)
			}
			if m != 0 && wrong && math.Abs(float64(m)) > 20 && math.Abs(l/math.Abs(float64(m))-1) > 1e-6 {
				t.Errorf("margin %v, positive %v: loss %v, want about the margin", m, y, l)
			}
		}
	}
}
