package optim

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/seedtest"
)

// A row is a value and its rule's state, as copies of a key hold it.
type row struct{ value, state []float32 }

func newRow(r godwit.Rule, value ...float32) row {
	s := make([]float32, r.StateLen(len(value)))
	r.InitState(s)
	if q, ok := r.(godwit.Querier); ok {
		q.Keep(value, s)
	}
	return row{value, s}
}

// pull is what a pull of the row gets.
func (x row) pull(r godwit.Rule) []float32 {
	dst := append([]float32(nil), x.value...)
	if q, ok := r.(godwit.Querier); ok {
		q.Query(dst, x.value, x.state)
	}
	return dst
}

func (x row) clone() row {
	return row{append([]float32(nil), x.value...), append([]float32(nil), x.state...)}
}

// merge adds to x what pushes made of base in a copy.
func (x row) merge(copy, base row) {
	for i := range x.value {
		x.value[i] += copy.value[i] - base.value[i]
	}
	for i := range x.state {
		x.state[i] += copy.state[i] - base.state[i]
	}
}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }

func wantRow(t *testing.T, what string, got row, value, state []float64) {
	t.Helper()
	for i, v := range value {
		if !near(float64(got.value[i]), v, 1e-6) {
			t.Errorf("%s: value[%d] = %v, want %v", what, i, got.value[i], v)
		}
	}
	for i, v := range state {
		if !near(float64(got.state[i]), v, 1e-6) {
			t.Errorf("%s: state[%d] = %v, want %v", what, i, got.state[i], v)
		}
	}
}

func TestStepsEqualThoseComputedByHand(t *testing.T) {
	r := godwit.Rule(SGD{LR: 0.5})
	x := newRow(r, 1, -2)
	r.Apply(x.value, x.state, []float32{2, -1})
	wantRow(t, r.Name(), x, []float64{0, -1.5}, nil)

	// Accumulators 3²=9 and 9+4²=25: steps 0.5·3/3 and 0.5·4/5.
	r = AdaGrad{LR: 0.5}
	x = newRow(r, 1, 7)
	r.Apply(x.value, x.state, []float32{3, 0})
	wantRow(t, r.Name(), x, []float64{0.5, 7}, []float64{9, 0})
	r.Apply(x.value, x.state, []float32{4, 0})
	wantRow(t, r.Name(), x, []float64{0.1, 7}, []float64{25, 0})

	// 7 + 3² = 16: step 2·3/(4+2).
	r = AdaGrad{LR: 2, Eps: 2, Init: 7}
	x = newRow(r, 1)
	r.Apply(x.value, x.state, []float32{3})
	wantRow(t, r.Name(), x, []float64{0}, []float64{16})

	// Mean of 1², 7² is 25; then of 0², 0² nothing.
	r = RowAdaGrad{LR: 0.5}
	x = newRow(r, 1, 1)
	r.Apply(x.value, x.state, []float32{1, 7})
	wantRow(t, r.Name(), x, []float64{0.9, 0.3}, []float64{25})
	r.Apply(x.value, x.state, []float32{0, 0})
	wantRow(t, r.Name(), x, []float64{0.9, 0.3}, []float64{25})

	// B1 = B2 = 1/2. First push 2: m = 1, v = 2, corrections 2 and 2: step
	// 2/√4 = 1. Second push -4: m = -1.5, v = 9, corrections 4/3: step -2/√12.
	r = Adam{LR: 1, B1: 0.5, B2: 0.5, Eps: 1e-12}
	x = newRow(r, 3)
	r.Apply(x.value, x.state, []float32{2})
	wantRow(t, r.Name(), x, []float64{2}, []float64{1, 2, 1})
	r.Apply(x.value, x.state, []float32{-4})
	wantRow(t, r.Name(), x, []float64{2 + 2/math.Sqrt(12)}, []float64{-1.5, 9, 2})
}

func TestZeroGradientsOnNewRowsChangeNothing(t *testing.T) {
	for _, r := range []godwit.Rule{SGD{LR: 1}, AdaGrad{LR: 1}, RowAdaGrad{LR: 1}, Adam{LR: 1}, Momentum{LR: 1},
		FTRL{LR: 1}, FTRL{LR: 1, L1: 1, L2: 1}, ProximalSGD{LR: 1, L1: 1}, ProximalAdaGrad{LR: 1, L1: 1}} {
		for _, dim := range []int{1, 7, 8, 33} {
			x := newRow(r, make([]float32, dim)...)
			r.Apply(x.value, x.state, make([]float32, dim))
			for i, v := range x.value {
				if v != 0 {
					t.Errorf("%s: value[%d] of %d became %v", r.Name(), i, dim, v)
				}
			}
		}
	}
}

func TestRulesNeitherKeepNorChangeThePush(t *testing.T) {
	for _, r := range []godwit.Rule{SGD{LR: 1}, AdaGrad{LR: 1}, RowAdaGrad{LR: 1}, Adam{LR: 1}, Momentum{LR: 1}, FTRL{LR: 1, L1: 1},
		ProximalSGD{LR: 1, L1: 1}, ProximalAdaGrad{LR: 1, L1: 1}} {
		x := newRow(r, make([]float32, 20)...)
		push := make([]float32, 20)
		for i := range push {
			push[i] = float32(i + 1)
		}
		r.Apply(x.value, x.state, push)
		for i := range push {
			if push[i] != float32(i+1) {
				t.Fatalf("%s changed push[%d] to %v", r.Name(), i, push[i])
			}
		}
	}
}

// The loss is ½·Σ cᵢ·(xᵢ-i)², whose minimum is xᵢ = i, under gradients with
// noise that fades.
func TestEachRuleFindsTheMinimumOfAQuadratic(t *testing.T) {
	rnd := seedtest.Rand(t)
	for _, r := range []godwit.Rule{SGD{LR: 0.2}, AdaGrad{LR: 1}, AdaGrad{LR: 1, Init: 0.1}, RowAdaGrad{LR: 1}, Adam{LR: 0.05},
		Momentum{LR: 0.02}, FTRL{LR: 2}, ProximalSGD{LR: 0.2}, ProximalAdaGrad{LR: 1}} {
		x := newRow(r, make([]float32, 10)...)
		g := make([]float32, 10)
		for step := range 3000 {
			at := x.pull(r)
			for i := range g {
				curve := 1 + float32(i%3)
				g[i] = curve*(at[i]-float32(i)) + float32(rnd.NormFloat64())/float32(1+step)
			}
			r.Apply(x.value, x.state, g)
		}
		for i, v := range x.pull(r) {
			if !near(float64(v), float64(i), 0.02) {
				t.Errorf("%s: coordinate %d ended at %v", r.Name(), i, v)
			}
		}
	}
}

func TestAdamCorrectionsAreExactWhereTheyAreCutOff(t *testing.T) {
	for _, b := range []float32{0.001, 0.5, 0.9, 0.999, 0.99999} {
		for n := float32(1); n < 1e7; n *= 1.25 {
			steps := float32(math.Floor(float64(n)))
			want := 1 / (1 - math.Pow(float64(b), float64(steps)))
			if got := float64(correction(b, steps)); !near(got/want, 1, 1e-6) {
				t.Errorf("correction of %v after %v steps is %v, want %v", b, steps, got, want)
			}
		}
	}
}

// Memory in which a row's state is made may have been another row's.
func TestAStateIsMadeWholeWhateverWasThere(t *testing.T) {
	for _, r := range []godwit.Rule{SGD{LR: 1}, AdaGrad{LR: 1, Init: 3}, RowAdaGrad{LR: 1, Init: 3}, Adam{LR: 1}, Momentum{LR: 1}, FTRL{LR: 1}, ProximalSGD{LR: 1},
		ProximalAdaGrad{LR: 1, Init: 3}, Max{}, Min{}, Set{}, Counter{}, RatedSGD{}, RatedAdaGrad{}, RatedRowAdaGrad{}, RatedAdam{}, SparseAdam{}} {
		clean := make([]float32, r.StateLen(6))
		r.InitState(clean)
		used := make([]float32, len(clean))
		for i := range used {
			used[i] = 7
		}
		r.InitState(used)
		if !slices.Equal(used, clean) {
			t.Errorf("%s: in memory that was used a state begins as %v, else as %v", r.Name(), used, clean)
		}
		if name := r.Name(); strings.Contains(name, "init=3") && slices.Contains(clean, 0) {
			t.Errorf("%s: a state begins as %v", name, clean)
		}
	}
}
