package optim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/seedtest"
)

// apart applies pushes to one row in their order, and to two copies of it in
// turns that are then merged.
func apart(r godwit.Rule, base row, pushes [][]float32) (serial, merged row) {
	serial, merged = base.clone(), base.clone()
	one, two := base.clone(), base.clone()
	for i, p := range pushes {
		r.Apply(serial.value, serial.state, p)
		if i%2 == 0 {
			r.Apply(one.value, one.state, p)
		} else {
			r.Apply(two.value, two.state, p)
		}
	}
	meet(r, merged, one, base)
	meet(r, merged, two, base)
	return serial, merged
}

// meet takes into x what pushes made of base in a copy, as the rule has it.
func meet(r godwit.Rule, x, copy, base row) {
	m, ok := r.(godwit.Merger)
	if !ok {
		x.merge(copy, base)
		return
	}
	diff := row{make([]float32, len(x.value)), make([]float32, len(x.state))}
	diff.merge(copy, base)
	m.Pack(copy.value, copy.state, diff.value)
	for i, d := range diff.state {
		x.state[i] += d
	}
	m.Merge(x.value, x.state, diff.value)
}

// mergers are rules that merge a push at each copy to what one row makes of all.
func mergers() []godwit.Rule {
	var all []godwit.Rule
	for _, r := range []AdaGrad{{LR: 0.25}, {LR: 0.25, Init: 1}, {LR: 0.25, Eps: 0.5}} {
		all = append(all, r, RowAdaGrad(r))
	}
	return all
}

func wantLike(t *testing.T, what string, got, want row) {
	t.Helper()
	for i, v := range want.value {
		if !near(float64(got.value[i]), float64(v), 1e-5*(1+math.Abs(float64(v)))) {
			t.Errorf("%s: value[%d] is %v, want %v", what, i, got.value[i], v)
		}
	}
	for i, v := range want.state {
		if !near(float64(got.state[i]), float64(v), 1e-5*(1+math.Abs(float64(v)))) {
			t.Errorf("%s: state[%d] is %v, want %v", what, i, got.state[i], v)
		}
	}
}

func TestWhatACopyPacksTakesItsCommonRowToTheCopy(t *testing.T) {
	rnd := seedtest.Rand(t)
	for _, r := range append(mergers(), Max{}, Min{}, Set{}) {
		for _, history := range []int{0, 1, 20} {
			base := warm(r, rnd, history, 21)
			copy := base.clone()
			for _, p := range whole(rnd, 1+rnd.IntN(9), 21) {
				r.Apply(copy.value, copy.state, p)
			}
			x := base.clone()
			meet(r, x, copy, base)
			wantLike(t, r.Name(), x, copy)
		}
	}
}

// A fresh copy has all of a value, and of the state no more than there is.
func TestAFreshCopyHasTheWholeValue(t *testing.T) {
	const dim = 21
	for _, r := range append(mergers(), Max{}, Min{}, Set{}) {
		if n := r.(godwit.Merger).Fresh(dim); n < dim || n > dim+r.StateLen(dim) {
			t.Errorf("%s: a fresh copy has %d floats, of a value of %d and %d of state", r.Name(), n, dim, r.StateLen(dim))
		}
	}
}

// Summed differences would go eight times as far in the first step.
func TestAPushAtEachOfManyCopiesMergesToWhatOneRowMakesOfThem(t *testing.T) {
	rnd := seedtest.Rand(t)
	for _, r := range mergers() {
		base := warm(r, rnd, rnd.IntN(3), 16)
		serial, merged := base.clone(), base.clone()
		for _, p := range whole(rnd, 8, 16) {
			r.Apply(serial.value, serial.state, p)
			copy := base.clone()
			r.Apply(copy.value, copy.state, p)
			meet(r, merged, copy, base)
		}
		wantLike(t, r.Name(), merged, serial)
	}
}

// A copy that lacks other copies' part of the state is pushed to. What comes of
// it at the owner does not show that.
func TestMergedAdaGradDoesNotDependOnTheStateOfTheCopy(t *testing.T) {
	rnd := seedtest.Rand(t)
	r := AdaGrad{LR: 0.25}
	base := warm(r, rnd, 20, 21)
	serial, merged := base.clone(), base.clone()
	p := whole(rnd, 1, 21)[0]
	r.Apply(serial.value, serial.state, p)
	old := base.clone()
	for i := range old.state {
		old.state[i] *= 0.3
	}
	copy := old.clone()
	r.Apply(copy.value, copy.state, p)
	meet(r, merged, copy, old)
	wantLike(t, r.Name(), merged, serial)
}

// whole draws pushes of small whole numbers, whose sums have no rounding.
func whole(rnd *rand.Rand, n, dim int) [][]float32 {
	pushes := make([][]float32, n)
	for i := range pushes {
		pushes[i] = make([]float32, dim)
		for j := range pushes[i] {
			pushes[i][j] = float32(rnd.IntN(17) - 8)
		}
	}
	return pushes
}

func warm(r godwit.Rule, rnd *rand.Rand, pushes, dim int) row {
	x := newRow(r, make([]float32, dim)...)
	for _, p := range whole(rnd, pushes, dim) {
		r.Apply(x.value, x.state, p)
	}
	return x
}

func TestMergedAddAndSGDEqualTheSerialRun(t *testing.T) {
	rnd := seedtest.Rand(t)
	for _, r := range []godwit.Rule{godwit.Add{}, SGD{LR: 0.25}} {
		serial, merged := apart(r, warm(r, rnd, 5, 21), whole(rnd, 40, 21))
		for i := range serial.value {
			if serial.value[i] != merged.value[i] {
				t.Errorf("%s: value[%d] is %v, serial %v", r.Name(), i, merged.value[i], serial.value[i])
			}
		}
	}
}

func TestMergedAdaGradAccumulatorsAreTheSum(t *testing.T) {
	rnd := seedtest.Rand(t)
	// 16 coordinates, so that RowAdaGrad's means are exact.
	for _, r := range []godwit.Rule{AdaGrad{LR: 0.25, Init: 1}, RowAdaGrad{LR: 0.25, Init: 1}} {
		serial, merged := apart(r, warm(r, rnd, 5, 16), whole(rnd, 40, 16))
		for i := range serial.state {
			if serial.state[i] != merged.state[i] {
				t.Errorf("%s: state[%d] is %v, serial %v", r.Name(), i, merged.state[i], serial.state[i])
			}
		}
	}
}

// Each step is at most √(1+q/s0) times as long as the serial one (package
// comment), so values differ by at most (√(1+q/s0) - 1) of the way that the
// serial run went, forth and back added up.
func TestMergedAdaGradValuesDifferByAtMostTheDocumentedFactor(t *testing.T) {
	rnd := seedtest.Rand(t)
	r := AdaGrad{LR: 0.25, Init: 1}
	for _, history := range []int{0, 5, 50, 500} {
		base := warm(r, rnd, history, 16)
		pushes := whole(rnd, 40, 16)
		serial, merged := apart(r, base, pushes)
		for i := range serial.value {
			s0 := float64(base.state[i])
			s, way := s0, 0.0
			for _, p := range pushes {
				g := float64(p[i])
				s += g * g
				way += 0.25 * math.Abs(g) / math.Sqrt(s)
			}
			bound := (math.Sqrt(s/s0)-1)*way + 1e-4
			if d := math.Abs(float64(merged.value[i] - serial.value[i])); d > bound {
				t.Errorf("after %d pushes of history, value[%d] differs by %v, documented are at most %v", history, i, d, bound)
			}
		}
	}
}

func TestMergedAdamCountsEveryStep(t *testing.T) {
	rnd := seedtest.Rand(t)
	r := Adam{LR: 0.1}
	serial, merged := apart(r, warm(r, rnd, 5, 9), whole(rnd, 41, 9))
	if got, want := merged.state[18], serial.state[18]; got != want || want != 46 {
		t.Errorf("merged copies counted %v steps, serial %v, want 46", got, want)
	}
}

// With one push at each of two copies, the means differ from the serial ones
// only in the second order of 1-B.
func TestMergedAdamMeansAgreeToFirstOrder(t *testing.T) {
	rnd := seedtest.Rand(t)
	const dim, largest = 9, 8
	r := Adam{LR: 0.1}
	serial, merged := apart(r, warm(r, rnd, 50, dim), whole(rnd, 2, dim))
	for i := range dim {
		// |m| and the pushes are at most 8, v and their squares at most 64.
		if d := math.Abs(float64(serial.state[i] - merged.state[i])); d > 2*0.1*0.1*largest+1e-5 {
			t.Errorf("m[%d] differs by %v", i, d)
		}
		if d := math.Abs(float64(serial.state[dim+i] - merged.state[dim+i])); d > 2*0.001*0.001*largest*largest+1e-5 {
			t.Errorf("v[%d] differs by %v", i, d)
		}
	}
}

func TestAdamStepsAreBoundedWhateverMergingLeft(t *testing.T) {
	rnd := seedtest.Rand(t)
	const dim = 19
	for _, r := range []godwit.Rule{Adam{LR: 0.1}, SparseAdam{}} {
		for range 1000 {
			value, push := make([]float32, dim), make([]float32, dim)
			if rnd.IntN(2) == 0 {
				push = whole(rnd, 1, dim)[0]
			}
			if _, ok := r.(Rated); ok {
				value, push = append(value, 0), append(push, 0.1)
			}
			x := newRow(r, value...)
			for i := range x.state {
				x.state[i] = float32(rnd.NormFloat64() * math.Pow(10, float64(rnd.IntN(9)-4)))
			}
			r.Apply(x.value, x.state, push)
			for i, v := range x.value[:dim] {
				if !(math.Abs(float64(v)) <= 0.1*7.3) {
					t.Fatalf("%s: a step of %v from state %v", r.Name(), v, x.state)
				}
				if !(x.state[dim+i] >= 0) {
					t.Fatalf("%s: v[%d] is %v after a step", r.Name(), i, x.state[dim+i])
				}
			}
		}
	}
}

func TestAdamSerialStepsComeNearTheBoundButNeverReachIt(t *testing.T) {
	for _, r := range []Adam{{LR: 1}, {LR: 1, B1: 0.5, B2: 0.9}, {LR: 1, B1: 0.9, B2: 0.82}} {
		r = r.filled()
		limit := float64(r.limit()) / 1.0005
		longest := 0.0
		for _, quiet := range []int{0, 1, 10, 20000} {
			x := newRow(r, 0)
			for range quiet {
				r.Apply(x.value, x.state, []float32{0})
			}
			// Gradients that grow by B2/B1 make an equality of the bound's inequality.
			for g := 1.0; g < 1e15 && g > 1e-15; g *= float64(r.B2) / float64(r.B1) {
				x.value[0] = 0
				r.Apply(x.value, x.state, []float32{float32(g)})
				d := math.Abs(float64(x.value[0]))
				if !(d <= limit) {
					t.Fatalf("%s: a serial step of %v, the bound is %v", r.Name(), d, limit)
				}
				longest = max(longest, d)
			}
		}
		if longest < 0.9*limit {
			t.Errorf("%s: the longest step is %v, the bound %v is far off", r.Name(), longest, limit)
		}
	}
}

// Two copies that merge every few pushes find the minimum too.
func TestEachRuleConvergesOnMergedCopies(t *testing.T) {
	for _, r := range []godwit.Rule{SGD{LR: 0.1}, AdaGrad{LR: 0.5}, RowAdaGrad{LR: 0.5}, Adam{LR: 0.02}} {
		base := newRow(r, make([]float32, 10)...)
		g := make([]float32, 10)
		for range 1000 {
			a, b := base.clone(), base.clone()
			for _, x := range []row{a, b} {
				for range 3 {
					for i := range g {
						g[i] = x.value[i] - float32(i)
					}
					r.Apply(x.value, x.state, g)
				}
			}
			old := base.clone()
			meet(r, base, a, old)
			meet(r, base, b, old)
		}
		for i, v := range base.value {
			if !near(float64(v), float64(i), 0.05) {
				t.Errorf("%s: coordinate %d ended at %v", r.Name(), i, v)
			}
		}
	}
}

// Two copies of a row are pushed gradients whose squares overflow, and exchange what their
// pushes did as nodes do, a round after each push.
func TestGradientsWhoseSquaresOverflowLeaveMergedRowsFinite(t *testing.T) {
	for _, r := range []godwit.Rule{AdaGrad{LR: 0.1}, RowAdaGrad{LR: 0.1}, ProximalAdaGrad{LR: 0.1, L1: 0.01}, Adam{LR: 0.1}, FTRL{LR: 0.1, L1: 0.01},
		RatedAdaGrad{}, RatedRowAdaGrad{}, RatedAdam{}, SparseAdam{}} {
		for _, dim := range []int{9, 40} {
			owner := newRow(r, make([]float32, dim)...)
			for step := range 5 {
				base := owner.clone()
				for copies := range 2 {
					x := base.clone()
					push := make([]float32, dim)
					for i := range push {
						push[i] = 1
					}
					push[copies], push[5], push[7] = 2e19, 1e18*float32(step), -1e25 // those of 7 overflow at both
					r.Apply(x.value, x.state, push)
					r.Apply(x.value, x.state, push)
					meet(r, owner, x, base)
				}
				for _, x := range slices.Concat(owner.value, owner.state, owner.pull(r)) {
					if x-x != 0 {
						t.Fatalf("%s: after round %d the row is %v, %v", r.Name(), step+1, owner.value, owner.state)
					}
				}
			}
		}
	}
}

// What is beyond 2⁴⁷ counts as that, and keeps its sign.
func TestAGradientBeyondTheLargestCountsAsTheLargestOfItsSign(t *testing.T) {
	for _, r := range []godwit.Rule{ProximalAdaGrad{LR: 0.1}, Adam{LR: 0.1}, FTRL{LR: 0.1}, SparseAdam{}} {
		for _, sign := range []float32{-1, 1} {
			far, most := newRow(r, 0, 0), newRow(r, 0, 0)
			r.Apply(far.value, far.state, []float32{sign * 1e20, 0.5})
			r.Apply(most.value, most.state, []float32{sign * (1 << 47), 0.5})
			if !slices.Equal(far.value, most.value) || !slices.Equal(far.state, most.state) || !(far.pull(r)[0]*sign < 0) {
				t.Errorf("%s: a gradient of %v leaves %v, %v; one of 2⁴⁷ %v, %v", r.Name(), sign*1e20, far.value, far.state, most.value, most.state)
			}
		}
	}
}

// A gradient that is no number, or an infinite one, is not hidden.
func TestAGradientThatIsNotFiniteIsSeen(t *testing.T) {
	for _, r := range []godwit.Rule{AdaGrad{LR: 0.1}, Adam{LR: 0.1}, FTRL{LR: 0.1}} {
		for _, g := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			x := newRow(r, 0)
			r.Apply(x.value, x.state, []float32{g})
			if v := x.value[0]; v-v == 0 {
				t.Errorf("%s: a gradient of %v leaves %v", r.Name(), g, v)
			}
		}
	}
}
