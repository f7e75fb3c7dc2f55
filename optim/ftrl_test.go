package optim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/seedtest"
)

// A paperFTRL is algorithm 1 of McMahan et al. 2013 for one coordinate, as it
// stands there, in float64.
type paperFTRL struct{ alpha, beta, l1, l2, z, n float64 }

func (f *paperFTRL) weight() float64 {
	if math.Abs(f.z) <= f.l1 {
		return 0
	}
	sgn := 1.0
	if f.z < 0 {
		sgn = -1
	}
	return -1 / ((f.beta+math.Sqrt(f.n))/f.alpha + f.l2) * (f.z - sgn*f.l1)
}

func (f *paperFTRL) learn(g float64) {
	w := f.weight()
	sigma := (math.Sqrt(f.n+g*g) - math.Sqrt(f.n)) / f.alpha
	f.z += g - sigma*w
	f.n += g * g
}

func TestFTRLFollowsTheFormulasOfItsPaper(t *testing.T) {
	rnd := seedtest.Rand(t)
	for _, r := range []FTRL{{LR: 0.1}, {LR: 0.1, L1: 1}, {LR: 0.5, Beta: 2, L1: 3, L2: 4}, {LR: 1, Beta: 0.1, L2: 1}} {
		const dim = 5
		x := newRow(r, make([]float32, dim)...)
		paper := make([]paperFTRL, dim)
		for i := range paper {
			paper[i] = paperFTRL{alpha: float64(r.LR), beta: float64(orElse(r.Beta, FTRLBeta)), l1: float64(r.L1), l2: float64(r.L2)}
		}
		push := make([]float32, dim)
		for step := range 500 {
			for i := range push {
				push[i] = float32(rnd.NormFloat64()) + 0.3*float32(i-2)
			}
			r.Apply(x.value, x.state, push)
			weights := x.pull(r)
			for i := range paper {
				paper[i].learn(float64(push[i]))
				// Float32 sums of some hundred terms are good to about 1e-5 of their size.
				if got, want := float64(weights[i]), paper[i].weight(); !near(got, want, 1e-4*max(1, math.Abs(want))) {
					t.Fatalf("%s: after %d pushes weight %d is %v, the paper's is %v", r.Name(), step+1, i, got, want)
				}
			}
		}
	}
}

func TestFTRLKeepsAtZeroWhatDoesNotOutweighL1(t *testing.T) {
	r := FTRL{LR: 0.5, L1: 2}
	x := newRow(r, 0, 0)
	for range 3 {
		r.Apply(x.value, x.state, []float32{0.5, -0.75})
	}
	w := x.pull(r)
	if w[0] != 0 {
		t.Errorf("summed gradients of 1.5 against L1 = 2 moved the weight to %v", w[0])
	}
	if w[1] <= 0 {
		t.Errorf("summed gradients of -2.25 against L1 = 2 left the weight at %v", w[1])
	}
}

// Weights are exported, and a reader may take -0 for one that is there.
func TestNoFTRLWeightIsMinusZero(t *testing.T) {
	r := FTRL{LR: 0.1, L1: 1}
	z := []float32{0, float32(math.Copysign(0, -1)), 0.5, -0.5, 1, -1}
	w := make([]float32, len(z))
	r.Query(w, z, make([]float32, len(z)))
	for i, x := range w {
		if math.Float32bits(x) != 0 {
			t.Errorf("the weight of the sum %v is %v, want 0", z[i], x)
		}
	}
}

func TestFTRLStartsFromAValueThatWasSet(t *testing.T) {
	for _, r := range []FTRL{{LR: 0.5}, {LR: 0.1, L1: 3, L2: 2}} {
		x := newRow(r, 0.75, -2, 0)
		if w := x.pull(r); !near(float64(w[0]), 0.75, 1e-6) || !near(float64(w[1]), -2, 1e-6) || w[2] != 0 {
			t.Errorf("%s: the weights 0.75, -2, 0 are kept as %v", r.Name(), w)
		}
		r.Apply(x.value, x.state, []float32{0, 1e-4, 0})
		if w := x.pull(r); !near(float64(w[0]), 0.75, 1e-5) || !near(float64(w[1]), -2, 1e-3) || w[1] >= -2 || w[2] != 0 {
			t.Errorf("%s: after a push of nearly nothing the weights are %v, want little below 0.75, -2, and 0", r.Name(), w)
		}
	}
}

// What one row and merged copies must share: the summed squares, exactly, and
// weights that follow from the sums.
func TestMergedFTRLDerivesItsWeightsFromExactSums(t *testing.T) {
	rnd := seedtest.Rand(t)
	r := FTRL{LR: 0.25, L1: 30}
	const dim = 16
	base := warm(r, rnd, 50, dim)
	serial, merged := apart(r, base, whole(rnd, 40, dim))
	weights := merged.pull(r)
	for i := range dim {
		if got, want := merged.state[i], serial.state[i]; got != want {
			t.Errorf("n[%d] is %v, serial %v", i, got, want)
		}
		z := merged.value[i]
		if zero := float32(math.Abs(float64(z))) <= r.L1; zero != (weights[i] == 0) {
			t.Errorf("weight %d is %v where z is %v and L1 is %v", i, weights[i], z, r.L1)
		}
	}
}

// Eps is added to the root, and dampens steps.
func TestEpsDampensProximalAdaGrad(t *testing.T) {
	x := newRow(ProximalAdaGrad{}, 0)
	ProximalAdaGrad{LR: 1, Eps: 3}.Apply(x.value, x.state, []float32{1})
	if x.value[0] != -0.25 {
		t.Errorf("a gradient of 1 makes 0 to %v, want -1/(1+3)", x.value[0])
	}
}

// The loss is Σ ½·(xᵢ-cᵢ)² + l1·|xᵢ| + l2/2·xᵢ², whose minimum is known: c
// shrunk by l1 over 1 + l2.
func TestProximalRulesFindTheMinimumOfAnElasticNet(t *testing.T) {
	const l1, l2 = 0.5, 0.25
	c := []float32{-3, -0.5, -0.25, 0, 0.25, 0.5, 3}
	for _, r := range []godwit.Rule{ProximalSGD{LR: 0.1, L1: l1, L2: l2}, ProximalAdaGrad{LR: 1, L1: l1, L2: l2}} {
		x := newRow(r, make([]float32, len(c))...)
		g := make([]float32, len(c))
		for range 5000 {
			for i := range g {
				g[i] = x.value[i] - c[i]
			}
			r.Apply(x.value, x.state, g)
		}
		for i, got := range x.value {
			want := shrink(c[i], l1) / (1 + l2)
			if want == 0 && got != 0 || !near(float64(got), float64(want), 1e-3) {
				t.Errorf("%s: coordinate %d ended at %v, want %v", r.Name(), i, got, want)
			}
		}
	}
}

func TestProximalStepsEqualThoseComputedByHand(t *testing.T) {
	r := godwit.Rule(ProximalSGD{LR: 0.5, L1: 1, L2: 2})
	x := newRow(r, 3, 0.25, -3)
	// 3-0.5·2 = 2, shrunk by 0.5 to 1.5, over 1+0.5·2; 0.25 shrunk to 0; -3+1 = -2.
	r.Apply(x.value, x.state, []float32{2, 0, -2})
	wantRow(t, r.Name(), x, []float64{0.75, 0, -0.75}, nil)

	// Accumulator 16: step 2/4 = 0.5 and as above.
	r = ProximalAdaGrad{LR: 2, L1: 1, L2: 2}
	x = newRow(r, 4, 5)
	r.Apply(x.value, x.state, []float32{4, 0})
	wantRow(t, r.Name(), x, []float64{0.75, 5}, []float64{16, 0})
}

func TestMomentumAddsUpDecayedGradients(t *testing.T) {
	r := Momentum{LR: 0.5, Decay: 0.5}
	x := newRow(r, 1)
	r.Apply(x.value, x.state, []float32{2})
	wantRow(t, r.Name(), x, []float64{0}, []float64{2})
	r.Apply(x.value, x.state, []float32{-3})
	wantRow(t, r.Name(), x, []float64{1}, []float64{-2})
}

// With one push at each of two copies, the velocities differ from the serial
// one only in the second order of 1-Decay.
func TestMergedMomentumAgreesToFirstOrder(t *testing.T) {
	rnd := seedtest.Rand(t)
	const dim, largest = 9, 80 // pushes of at most 8 sum up to at most 8/(1-0.9)
	r := Momentum{LR: 0.1}
	serial, merged := apart(r, warm(r, rnd, 50, dim), whole(rnd, 2, dim))
	for i := range dim {
		if d := math.Abs(float64(serial.state[i] - merged.state[i])); d > 2*0.1*0.1*largest+1e-5 {
			t.Errorf("the velocity of coordinate %d differs by %v", i, d)
		}
	}
}

// A FTRL row that is merged every few pushes ends as sparse as a serial one.
func TestMergedFTRLIsAsSparseAsTheSerialRun(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	r := FTRL{LR: 0.5, L1: 60}
	const dim = 200
	serial := newRow(r, make([]float32, dim)...)
	base := newRow(r, make([]float32, dim)...)
	g := make([]float32, dim)
	for range 100 {
		a, b := base.clone(), base.clone()
		for _, x := range []row{a, b} {
			for i := range g { // half of the coordinates have nothing to learn
				g[i] = float32(rnd.NormFloat64())
				if i%2 == 0 {
					g[i] += 1
				}
			}
			r.Apply(serial.value, serial.state, g)
			r.Apply(x.value, x.state, g)
		}
		old := base.clone()
		meet(r, base, a, old)
		meet(r, base, b, old)
	}
	w, want := base.pull(r), serial.pull(r)
	for i := range dim {
		if (want[i] == 0) != (w[i] == 0) {
			t.Errorf("weight %d is %v merged, %v serial", i, w[i], want[i])
		}
		if learns := i%2 == 0; learns != (w[i] != 0) {
			t.Errorf("weight %d is %v", i, w[i])
		}
	}
}

// Of all numbers, infinite ones and NaN included, it is the proximal operator bit by bit.
func TestShrinkingDoesNotDependOnTheSign(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	number := func() float32 {
		some := []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
		if i := r.IntN(2 * len(some)); i < len(some) {
			return some[i]
		}
		return math.Float32frombits(r.Uint32())
	}
	for range 100_000 {
		x, by, want := number(), number(), float32(0)
		if by < 0 {
			by = -by
		}
		switch {
		case x > by:
			want = x - by
		case x < -by:
			want = x + by
		}
		if got := shrink(x, by); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("seed %d: %v shrunk by %v is %v, want %v", seed, x, by, got, want)
		}
	}
}
