package vec

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSumSoftplusIsWithinItsBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 511, 512, 513, 515, 2000} {
		for _, scale := range []float64{1e-3, 1, 10, 200} {
			x := make([]float32, n)
			want := 0.0
			for i := range x {
				x[i] = float32(rng.NormFloat64() * scale)
				want += max(float64(x[i]), 0) + math.Log1p(math.Exp(-math.Abs(float64(x[i]))))
			}
			sigmoids := make([]float32, n)
			Sigmoid(sigmoids, x)
			got := SumSoftplus(x)
			if bound := 0x1p-21*want + float64(n)*0x1p-52; !(math.Abs(got-want) <= bound) {
				t.Errorf("%d numbers of deviation %g: %.9g, want %.9g ± %.2g", n, scale, got, want, bound)
			}
			for i := range x {
				if x[i] != sigmoids[i] {
					t.Fatalf("%d numbers: %d is %g, and %g is its sigmoid", n, i, x[i], sigmoids[i])
				}
			}
		}
	}
}

func TestSumSoftplusOfWhatIsNotFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	if got := SumSoftplus([]float32{inf, 1, 2, 3, -inf}); !math.IsInf(got, 1) {
		t.Errorf("with +Inf: %g", got)
	}
	if got, want := SumSoftplus([]float32{-inf, 0}), math.Ln2; math.Abs(got-want) > 1e-6 {
		t.Errorf("with −Inf: %g, want %g", got, want)
	}
	for _, bits := range []uint32{0x7fc00000, 0xffc00000} { // of either sign
		for i := range 6 {
			x := make([]float32, 6)
			x[i] = math.Float32frombits(bits)
			if got := SumSoftplus(x); !math.IsNaN(got) {
				t.Errorf("with NaN %x at %d: %g", bits, i, got)
			}
		}
	}
}

func BenchmarkSumSoftplus(b *testing.B) {
	from := make([]float32, 128)
	for i := range from {
		from[i] = float32(i%17) - 8
	}
	x := make([]float32, len(from))
	for b.Loop() {
		copy(x, from)
		SumSoftplus(x)
	}
}
