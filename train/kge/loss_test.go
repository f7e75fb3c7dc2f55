package kge

import (
	"math"
	"math/rand/v2"
	"testing"
)

// slowLoss is the specification of the losses, in float64.
func slowLoss(name string, others, margin, alpha, pos float64, neg []float64) float64 {
	n := float64(len(neg))
	if alpha > 0 {
		return slowWeighted(margin, pos, neg, slowWeights(alpha, neg))
	}
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

// slowWeights are the softmax of alpha times the scores, and slowWeighted is the
// logistic loss that weighs its negatives.
func slowWeights(alpha float64, neg []float64) []float64 {
	weights, sum := make([]float64, len(neg)), 0.0
	for i, x := range neg {
		weights[i] = math.Exp(alpha * x)
		sum += weights[i]
	}
	for i := range weights {
		weights[i] /= sum
	}
	return weights
}

func slowWeighted(margin, pos float64, neg, weights []float64) float64 {
	l := math.Log1p(math.Exp(-pos - margin))
	for i, x := range neg {
		l += weights[i] * math.Log1p(math.Exp(x+margin))
	}
	return l
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// lossCases are the losses with the temperatures that they may have.
var lossCases = []struct {
	name  string
	alpha float32
}{{Softmax, 0}, {Logistic, 0}, {Logistic, 0.5}, {Logistic, 2}}

func TestLossesAreWhatTheirFormulasSay(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, x := range lossCases {
		name := x.name
		for _, n := range []int{1, 3, 4, 7, 600, 1100} {
			const others, margin = 5000, 0.7
			l, err := lossNamed(name, others, margin, x.alpha)
			if err != nil {
				t.Fatal(err)
			}
			neg := make([]float32, n)
			for i := range neg {
				neg[i] = float32(5 * r.NormFloat64())
			}
			if n > 1 || x.alpha == 0 {
				neg[n-1] = minusInf
			}
			scores := wide(neg)
			pos := float32(r.NormFloat64())
			got, gpos := l(pos, neg, &draws{n: n}, make([]float32, n))
			want := slowLoss(name, others, margin, float64(x.alpha), float64(pos), scores)
			if math.Abs(float64(got)-want) > 1e-4*max(1, want) {
				t.Errorf("%s of %d negatives is %v, want %v", name, n, got, want)
			}
			if gpos > 0 || gpos < -1 || scores[n-1] == math.Inf(-1) && neg[n-1] != 0 {
				t.Errorf("%s of %d negatives: gradients %v and %v, want -1 … 0 and 0 for a score of -Inf", name, n, gpos, neg[n-1])
			}
		}
	}
}

// The mean over all draws that there are, which may hit the answer, is the full sum.
func TestTheSampledSoftmaxIsUnbiased(t *testing.T) {
	task, err := New(DefaultConfig(), randomGraph(4, 1, 10, 1))
	if err != nil {
		t.Fatal(err)
	}
	scores := []float32{minusInf, 0.5, -1, 2} // of the entities; 0 is the answer, whose is 0
	full := 0.0
	for _, x := range scores {
		full += math.Exp(float64(x))
	}
	mean := 0.0
	for _, a := range scores {
		for _, b := range scores {
			l, _ := task.loss(0, []float32{a, b}, &draws{n: 2}, nil)
			mean += math.Expm1(float64(l)) / 16
		}
	}
	if math.Abs(mean-full) > 1e-4 {
		t.Errorf("the mean of sampled sums is %v, want %v", mean, full)
	}
}

func TestANegativeCountsAsOftenAsItWasDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, x := range lossCases {
		l, err := lossNamed(x.name, 5000, 0.7, x.alpha)
		if err != nil {
			t.Fatal(err)
		}
		const n = 50
		once, all, from := make([]float32, n), []float32{}, []int{}
		d := &draws{}
		for i := range once {
			once[i] = float32(2 * r.NormFloat64())
			times := max(1, r.IntN(5)-1)
			if times > 1 {
				d.again = append(d.again, repeat{int32(i), float32(times - 1)})
			}
			for range times {
				all, from = append(all, once[i]), append(from, i)
			}
		}
		d.n = len(all)
		got, g := l(0.3, once, d, make([]float32, n))
		want, wantG := l(0.3, all, &draws{n: len(all)}, make([]float32, len(all)))
		sums := make([]float32, n)
		for j, i := range from {
			sums[i] += all[j]
		}
		near := func(a, b float32) bool { return math.Abs(float64(a-b)) <= 1e-5*(1+math.Abs(float64(b))) }
		if !near(got, want) || !near(g, wantG) {
			t.Errorf("%s %v: loss %v and gradient %v, want %v and %v", x.name, x.alpha, got, g, want, wantG)
		}
		for i := range once {
			if !near(once[i], sums[i]) || once[i] == 0 {
				t.Errorf("%s %v: negative %d has the gradient %v, want %v", x.name, x.alpha, i, once[i], sums[i])
			}
		}
	}
}

func TestLossesOfExtremeScoresAreFinite(t *testing.T) {
	for _, x := range lossCases {
		name := x.name
		l, err := lossNamed(name, 100, 0, x.alpha)
		if err != nil {
			t.Fatal(err)
		}
		for _, pos := range []float32{-1e4, 0, 1e4} {
			neg := []float32{-1e4, 1e4, minusInf, 0}
			got, g := l(pos, neg, &draws{n: 4}, make([]float32, 4))
			for _, y := range append(neg, got, g) {
				if y := float64(y); math.IsNaN(y) || math.IsInf(y, 0) {
					t.Errorf("%s at %v: loss %v, gradients %v and %v", name, pos, got, g, neg)
					break
				}
			}
		}
	}
}

func TestWithoutNegativesTheSelfAdversarialLossIsThePositives(t *testing.T) {
	for _, neg := range [][]float32{{}, {minusInf, minusInf}} {
		want, wantG := logistic(0.5)(0.3, nil, &draws{}, nil)
		got, g := adversarial(0.5, 1)(0.3, neg, &draws{n: len(neg)}, make([]float32, len(neg)))
		if got != want || g != wantG {
			t.Errorf("of %d negatives that are none: loss %v and gradient %v, want %v and %v", len(neg), got, g, want, wantG)
		}
		for _, x := range neg {
			if x != 0 {
				t.Errorf("the gradients towards them are %v, want 0", neg)
			}
		}
	}
}

// The worst negative of a query gets the more of the gradient, the higher the
// temperature, and all together as much as they have room for: their weights sum to 1.
func TestTheTemperatureMovesTheGradientToTheBestScores(t *testing.T) {
	share := func(alpha float32) float32 {
		l, err := lossNamed(Logistic, 100, 20, alpha) // by the margin all sigmoids are 1
		if err != nil {
			t.Fatal(err)
		}
		neg := []float32{-1, 0, 1, 2}
		l(0, neg, &draws{n: 4}, make([]float32, 4))
		if s := sumOf(neg); math.Abs(float64(s-1)) > 1e-5 {
			t.Errorf("with a temperature of %v the weights sum to %v, want 1", alpha, s)
		}
		return neg[3]
	}
	if a, b, c := share(0), share(0.5), share(2); !(a < b && b < c) {
		t.Errorf("the best negative weighs %v, %v and %v at rising temperatures", a, b, c)
	}
}
