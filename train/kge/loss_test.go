package kge

import (
	"math"
	"math/rand/v2"
	"testing"
)

// slowLoss is the specification of the losses, in float64.
func slowLoss(name string, others, margin, pos float64, neg []float64) float64 {
	n := float64(len(neg))
	if name == Softmax {
		sum := math.Exp(pos)
		for _, x := range neg {
			sum += others / n * math.Exp(x)
		}
		return math.Log(sum) - pos
	}
	l := math.Log1p(math.Exp(-pos - margin))
	for _, x := range neg {
		l += math.Log1p(math.Exp(x+margin)) / n
	}
	return l
}

func TestLossesAreWhatTheirFormulasSay(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, name := range []string{Softmax, Logistic} {
		for _, n := range []int{1, 3, 4, 7, 600, 1100} {
			const others, margin = 5000, 0.7
			l, err := lossNamed(name, others, margin)
			if err != nil {
				t.Fatal(err)
			}
			neg, wide := make([]float32, n), make([]float64, n)
			for i := range neg {
				neg[i] = float32(5 * r.NormFloat64())
				wide[i] = float64(neg[i])
			}
			neg[n-1], wide[n-1] = minusInf, math.Inf(-1)
			pos := float32(r.NormFloat64())
			got, gpos := l(pos, neg)
			want := slowLoss(name, others, margin, float64(pos), wide)
			if math.Abs(float64(got)-want) > 1e-4*max(1, want) {
				t.Errorf("%s of %d negatives is %v, want %v", name, n, got, want)
			}
			if gpos > 0 || gpos < -1 || neg[n-1] != 0 {
				t.Errorf("%s of %d negatives: gradients %v and %v, want -1 … 0 and 0 for a score of -Inf", name, n, gpos, neg[n-1])
			}
		}
	}
}

func TestLossesOfExtremeScoresAreFinite(t *testing.T) {
	for _, name := range []string{Softmax, Logistic} {
		l, err := lossNamed(name, 100, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, pos := range []float32{-1e4, 0, 1e4} {
			neg := []float32{-1e4, 1e4, minusInf, 0}
			got, g := l(pos, neg)
			for _, x := range append(neg, got, g) {
				if x := float64(x); math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("%s at %v: loss %v, gradients %v and %v", name, pos, got, g, neg)
					break
				}
			}
		}
	}
}
