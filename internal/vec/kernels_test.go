package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit/internal/seedtest"
)

// everyLevel runs a test with every kind of kernels that the processor has, and with
// the plain loops.
func everyLevel(t *testing.T, f func(t *testing.T)) {
	defer restore()()
	for name, choose := range levels() {
		choose()
		t.Run(name, f)
	}
}

// A kernel is a function of vectors of equal lengths, in both versions. Every
// one of the vectors may be written.
type kernel struct {
	name        string
	vectors     int
	even        bool // lengths must be even
	fast, plain func(v [][]float32, a float32) any
}

// void wraps a function that returns nothing.
func void(f func(v [][]float32, a float32)) func([][]float32, float32) any {
	return func(v [][]float32, a float32) any { f(v, a); return nil }
}

func two(f func(x, y []float32)) func([][]float32, float32) any {
	return void(func(v [][]float32, _ float32) { f(v[0], v[1]) })
}

func three(f func(x, y, z []float32)) func([][]float32, float32) any {
	return void(func(v [][]float32, _ float32) { f(v[0], v[1], v[2]) })
}

func adamStep(a float32) *AdamStep {
	return &AdamStep{LR: a, B1: 0.9, B2: 0.999, Eps: 1e-8, C1: 1.5, C2: 20, Limit: 2}
}

// exact are the kernels that promise the plain loop's bits.
var exact = []kernel{
	{"Add", 2, false, two(Add), two(plainAdd)},
	{"Sub", 2, false, two(Sub), two(plainSub)},
	{"Mul", 3, false, three(Mul), three(plainMul)},
	{"AddMul", 3, false, three(AddMul), three(plainAddMul)},
	{"AXPY", 2, false,
		void(func(v [][]float32, a float32) { AXPY(v[0], a, v[1]) }),
		void(func(v [][]float32, a float32) { plainAXPY(v[0], a, v[1]) })},
	{"Scale", 1, false,
		void(func(v [][]float32, a float32) { Scale(v[0], a) }),
		void(func(v [][]float32, a float32) { plainScale(v[0], a) })},
	{"Delta", 3, false,
		func(v [][]float32, _ float32) any { return Delta(v[0], v[1], v[2]) },
		func(v [][]float32, _ float32) any { return plainDelta(v[0], v[1], v[2]) }},
	{"AdaGrad", 3, false,
		void(func(v [][]float32, a float32) { AdaGrad(v[0], v[1], v[2], a, 1e-8) }),
		void(func(v [][]float32, a float32) { plainAdaGrad(v[0], v[1], v[2], a, 1e-8) })},
	{"MulRoot", 2, false,
		void(func(v [][]float32, a float32) { MulRoot(v[0], v[1], a) }),
		void(func(v [][]float32, a float32) { plainMulRoot(v[0], v[1], a) })},
	{"AddDivRoot", 3, false,
		void(func(v [][]float32, a float32) { AddDivRoot(v[0], v[1], v[2], a) }),
		void(func(v [][]float32, a float32) { plainAddDivRoot(v[0], v[1], v[2], a) })},
	{"Adam", 4, false,
		void(func(v [][]float32, a float32) { Adam(v[0], v[1], v[2], v[3], adamStep(a)) }),
		void(func(v [][]float32, a float32) { plainAdam(v[0], v[1], v[2], v[3], adamStep(a)) })},
	{"TopicOdds", 3, false,
		void(func(v [][]float32, a float32) { TopicOdds(v[0], v[1], v[2], a) }),
		void(func(v [][]float32, a float32) { plainTopicOdds(v[0], v[1], v[2], a, 0) })},
	{"PairStep", 2, false,
		void(func(v [][]float32, a float32) { PairStep(v[0], v[1], a, 0.3) }),
		void(func(v [][]float32, a float32) { plainPairStep(v[0], v[1], a, 0.3) })},
	{"MulComplex", 3, true, three(MulComplex), three(plainMulComplex)},
	{"AddMulComplex", 3, true, three(AddMulComplex), three(plainAddMulComplex)},
	{"MulConj", 3, true, three(MulConj), three(plainMulConj)},
	{"AddMulConj", 3, true, three(AddMulConj), three(plainAddMulConj)},
	{"AddMulModulus", 2, true,
		void(func(v [][]float32, a float32) { AddMulModulus(v[0], v[1], a) }),
		void(func(v [][]float32, a float32) { plainAddMulModulus(v[0], v[1], a) })},
	{"ExpSum", 1, false, // but for its sum
		void(func(v [][]float32, a float32) { ExpSum(v[0], a) }),
		void(func(v [][]float32, a float32) { plainExpSum(v[0], a) })},
	{"Exp", 2, false, two(Exp), two(plainExp)},
	{"Sigmoid", 2, false, two(Sigmoid), two(plainSigmoid)},
}

// lengths are all short ones, and some round the sizes that loops are unrolled
// to.
func lengths() []int {
	var n []int
	for i := range 71 {
		n = append(n, i)
	}
	return append(n, 95, 96, 97, 127, 128, 129, 255, 256, 257, 1000, 1023)
}

const (
	guards    = 9
	guardWord = 12345.678
)

// guarded is a vector of n floats at some alignment with guard words round it,
// and a function that fails the test if one of those was overwritten.
func guarded(r *rand.Rand, n int, value func() float32) (v []float32, check func(t *testing.T, what string)) {
	all := make([]float32, n+2*guards+8)
	for i := range all {
		all[i] = guardWord
	}
	start := guards + r.IntN(8)
	v = all[start : start+n : start+n]
	for i := range v {
		v[i] = value()
	}
	return v, func(t *testing.T, what string) {
		t.Helper()
		for i, x := range all {
			if (i < start || i >= start+n) && x != guardWord {
				t.Fatalf("%s: word %d of a vector of %d was overwritten by %v", what, i-start, n, x)
			}
		}
	}
}

func ordinary(r *rand.Rand) func() float32 {
	return func() float32 { return float32(r.NormFloat64()) }
}

// odd draws the numbers at which floating point differs from arithmetic.
func odd(r *rand.Rand) func() float32 {
	inf := float32(math.Inf(1))
	special := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, float32(math.NaN()),
		math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32,
		1e-40, 88.7, 88.8, -87.4, -103.9, -104.1, 1, -1}
	return func() float32 {
		if r.IntN(3) == 0 {
			return special[r.IntN(len(special))]
		}
		return math.Float32frombits(r.Uint32())
	}
}

func sameBits(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func TestElementwiseKernelsGiveTheBitsOfThePlainLoops(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seedtest.Rand(t)
		for _, k := range exact {
			for _, n := range lengths() {
				if k.even && n%2 != 0 {
					continue
				}
				testExact(t, r, k, n, ordinary(r))
				testExact(t, r, k, n, odd(r))
			}
		}
	})
}

func testExact(t *testing.T, r *rand.Rand, k kernel, n int, value func() float32) {
	t.Helper()
	got, want := make([][]float32, k.vectors), make([][]float32, k.vectors)
	check := make([]func(*testing.T, string), k.vectors)
	for i := range got {
		got[i], check[i] = guarded(r, n, value)
		want[i] = append([]float32(nil), got[i]...)
	}
	if r.IntN(8) == 0 {
		last, before := k.vectors-1, max(k.vectors-2, 0)
		copy(got[last], got[before]) // so that Delta finds nothing new
		copy(want[last], want[before])
	}
	a := value()
	what := fmt.Sprintf("%s of %d floats", k.name, n)
	if g, w := k.fast(got, a), k.plain(want, a); g != w {
		t.Fatalf("%s returned %v, want %v", what, g, w)
	}
	for i := range got {
		for j := range got[i] {
			if !sameBits(got[i][j], want[i][j]) {
				t.Fatalf("%s: element %d of vector %d is %v, the plain loop gives %v", what, j, i, got[i][j], want[i][j])
			}
		}
		check[i](t, what)
	}
}

func TestAdamGivesTheBitsOfThePlainLoopForAllConstants(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seedtest.Rand(t)
		inf := float32(math.Inf(1))
		constants := func() *AdamStep {
			pick := func(x ...float32) float32 { return x[r.IntN(len(x))] }
			return &AdamStep{LR: pick(0, 1, -0.5, inf), B1: pick(0, 0.9, 1, 1.5), B2: pick(0, 0.999, 1, -1, 1.5),
				Eps: pick(0, 1e-8, 1), C1: pick(1, 10, inf), C2: pick(1, 1000, 0), Limit: pick(0, 1e-3, 1, inf, float32(math.NaN()))}
		}
		for range 300 {
			s := constants()
			k := kernel{fmt.Sprintf("Adam with %+v", *s), 4, false,
				void(func(v [][]float32, _ float32) { Adam(v[0], v[1], v[2], v[3], s) }),
				void(func(v [][]float32, _ float32) { plainAdam(v[0], v[1], v[2], v[3], s) })}
			testExact(t, r, k, 32+r.IntN(9), ordinary(r))
			testExact(t, r, k, 32+r.IntN(9), odd(r))
			testExact(t, r, k, 32+r.IntN(9), func() float32 { return float32(math.Copysign(0, r.NormFloat64())) })
		}
	})
}

func TestElementwiseKernelsAllowTheDestinationAsSource(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seedtest.Rand(t)
		for _, k := range exact {
			switch k.name {
			case "Delta", "AdaGrad", "Adam", "Scale", "PairStep", "ExpSum": // they have several destinations, or no source
				continue
			}
			for _, n := range lengths() {
				if k.even && n%2 != 0 {
					continue
				}
				x, _ := guarded(r, n, ordinary(r))
				want := append([]float32(nil), x...)
				other := append([]float32(nil), x...)
				v, w := make([][]float32, k.vectors), make([][]float32, k.vectors)
				for i := range v {
					v[i], w[i] = x, other
				}
				w[0] = want
				k.fast(v, 0.5)
				k.plain(w, 0.5)
				for j := range x {
					if !sameBits(x[j], want[j]) {
						t.Fatalf("%s of %d floats onto itself: element %d is %v, want %v", k.name, n, j, x[j], want[j])
					}
				}
			}
		}
	})
}

func TestDotIsWithinItsBoundOfTheExactSum(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seedtest.Rand(t)
		for _, n := range lengths() {
			for range 4 {
				a, checkA := guarded(r, n, ordinary(r))
				b, checkB := guarded(r, n, ordinary(r))
				want, size := exactDot(a, b)
				checkSum(t, "Dot", Dot(a, b), want, size, n)
				want, size = exactDot(a, a)
				checkSum(t, "SquaredNorm", SquaredNorm(a), want, size, n)
				checkA(t, "Dot")
				checkB(t, "Dot")
			}
		}
	})
}

// exactDot is the dot product in float64, and that of the magnitudes.
func exactDot(a, b []float32) (sum, size float64) {
	for i := range a {
		p := float64(a[i]) * float64(b[i])
		sum += p
		size += math.Abs(p)
	}
	return sum, size
}

func checkSum(t *testing.T, what string, got float32, want, size float64, n int) {
	t.Helper()
	bound := size * float64(n+1) * 0x1p-24
	if d := math.Abs(float64(got) - want); !(d <= bound) {
		t.Fatalf("%s of %d products: got %v, want %v ± %v", what, n, got, want, bound)
	}
}

func TestDotCountsOneInfinityOnceAndNoneFromOutside(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		inf := float32(math.Inf(1))
		for _, n := range lengths() {
			// Infinities outside of the vectors must not matter.
			a := make([]float32, n+16)
			for i := range a {
				a[i] = inf
			}
			v := a[8 : 8+n]
			clear(v)
			if got := Dot(v, v); got != 0 {
				t.Fatalf("Dot of %d zeros among infinities is %v", n, got)
			}
			// An infinity times a zero is NaN, wherever it stands; times one infinite.
			for i := range v {
				x, y := make([]float32, n), make([]float32, n)
				x[i] = inf
				if got := Dot(x, y); got == got {
					t.Fatalf("Dot of %d floats with ∞·0 at %d is %v, want NaN", n, i, got)
				}
				y[i] = 1
				for j := range y {
					if j != i {
						x[j] = 1
					}
				}
				if got := Dot(x, y); got != inf {
					t.Fatalf("Dot of %d floats with ∞·1 at %d is %v, want ∞", n, i, got)
				}
			}
		}
	})
}

func TestMaxIsTheLargestOfTheVectorAlone(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seedtest.Rand(t)
		for _, n := range lengths() {
			for range 4 {
				x, check := guarded(r, n, func() float32 { return float32(r.NormFloat64()) - 5 })
				want := float32(math.Inf(-1))
				for i := range x {
					if r.IntN(4) == 0 {
						x[i] = float32(math.Inf(-1))
					}
					want = max(want, x[i])
				}
				if got := Max(x); got != want {
					t.Fatalf("Max of %d floats is %v, want %v", n, got, want)
				}
				if n > 0 { // wherever it stands
					i := r.IntN(n)
					if x[i] = 7; Max(x) != 7 {
						t.Fatalf("Max of %d floats does not see element %d", n, i)
					}
				}
				check(t, "Max")
			}
		}
	})
}

func TestExpSumAddsEachPowerOnce(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seedtest.Rand(t)
		for _, n := range lengths() {
			for range 4 {
				x, check := guarded(r, n, ordinary(r))
				for i := range x {
					if r.IntN(8) == 0 {
						x[i] = float32(math.Inf(-1))
					}
				}
				less := float32(r.NormFloat64())
				got := ExpSum(x, less)
				want := 0.0
				for _, v := range x {
					want += float64(v)
				}
				checkSum(t, "ExpSum", got, want, want, n)
				check(t, "ExpSum")
			}
		}
	})
}

func TestLengthsThatDoNotFitPanicBeforeAnythingIsWritten(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		long, short := make([]float32, 40), make([]float32, 39, 40)
		for i := range long {
			long[i] = 1
		}
		for _, k := range exact {
			if k.vectors == 1 {
				continue
			}
			for odd := range k.vectors {
				v := make([][]float32, k.vectors)
				for i := range v {
					v[i] = append([]float32(nil), long...)
				}
				v[odd] = short
				mustPanic(t, k.name, func() { k.fast(v, 1) })
				for i := range v {
					if i != odd && SquaredNorm(v[i]) != 40 {
						t.Errorf("%s wrote to vector %d before it panicked", k.name, i)
					}
				}
			}
		}
		mustPanic(t, "Dot", func() { Dot(long, short) })
		mustPanic(t, "AddMulModulus of odd length", func() { AddMulModulus(short, short, 1) })
		mustPanic(t, "MulComplex of odd length", func() { MulComplex(short, short, short) })
		mustPanic(t, "MulABt", func() { MulABt(long, long, long, 5, 8, 9) })
		mustPanic(t, "AddMulAB", func() { AddMulAB(long, long, short, 5, 8, 8) })
		mustPanic(t, "AddMulAtB of negative size", func() { AddMulAtB(long[:4], long[:4], long[:4], -2, -2, -2) })
	})
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s did not panic", what)
		}
	}()
	f()
}
