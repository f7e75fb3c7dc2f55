package vec

import (
	"math"
	"testing"
)

// ulps is the distance of got from want in units of want's last place.
func ulps(got float32, want float64) float64 {
	if math.Abs(want) > math.MaxFloat32 {
		if math.IsInf(float64(got), int(want)) {
			return 0
		}
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

// everyNth calls f with slices of floats that walk through all bit patterns in
// steps.
func everyNth(step uint64, f func(x []float32)) {
	buf := make([]float32, 0, 1021)
	for b := uint64(0); b < 1<<32; b += step {
		x := math.Float32frombits(uint32(b))
		if x != x {
			continue
		}
		buf = append(buf, x)
		if len(buf) == cap(buf) {
			f(buf)
			buf = buf[:0]
		}
	}
	f(buf)
}

func TestExpIsWithinItsBoundOverAllFloats(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		testUlps(t, Exp, math.Exp, 1.3)
	})
}

func TestSigmoidIsWithinItsBoundOverAllFloats(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		testUlps(t, Sigmoid, func(x float64) float64 {
			if x < 0 {
				e := math.Exp(x)
				return e / (1 + e)
			}
			return 1 / (1 + math.Exp(-x))
		}, 2.5)
	})
}

func testUlps(t *testing.T, f func(dst, x []float32), want func(float64) float64, bound float64) {
	worst, at := 0.0, float32(0)
	dst := make([]float32, 1021)
	everyNth(4001, func(x []float32) {
		f(dst[:len(x)], x)
		for i, v := range x {
			if u := ulps(dst[i], want(float64(v))); !(u <= worst) {
				worst, at = u, v
			}
		}
	})
	t.Logf("worst error %.3f ulp, at %v", worst, at)
	if !(worst <= bound) {
		t.Errorf("error of %v ulp at %v, want at most %v", worst, at, bound)
	}
}
