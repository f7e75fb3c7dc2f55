package kge

import (
	"fmt"
	"math"

	"github.com/godwit-ps/godwit/internal/vec"
)

// A loss compares a query's positive score with the scores of the distinct negatives that
// were drawn. It returns the loss and the gradient towards pos, and overwrites neg with the
// gradients towards the negatives. Scores of -Inf have gradient 0. The scratch has
// room for as many numbers as there are negatives.
type loss func(pos float32, neg []float32, d *draws, scratch []float32) (l, gpos float32)

// draws are how often the negatives of a step were drawn: n times in all, and each of the
// distinct ones once, but for those in again.
type draws struct {
	n     int
	again []repeat
}

// repeat is how often a negative was drawn besides the first time.
type repeat struct {
	negative int32
	more     float32
}

// multiply counts each number as often as its negative was drawn, and returns what
// that adds to the sum.
func (d *draws) multiply(x []float32) (more float32) {
	for _, r := range d.again {
		y := r.more * x[r.negative]
		x[r.negative] += y
		more += y
	}
	return more
}

// The names of the losses.
const (
	Softmax  = "softmax"
	Logistic = "logistic"
)

// lossNamed returns a loss. Softmax takes the n sampled negatives for the whole
// of the entities, from all of which they are drawn: each counts entities/n times. A draw
// of the answer is one of the n, but adds nothing, which makes the sum an unbiased estimate
// of that of all entities but the answer. Logistic is
// the mean over the negatives plus the positive's; its scores are shifted by
// margin, which matters to scores that cannot be positive, such as distances. With
// a temperature alpha above 0 the mean over the negatives is weighted by how well
// they score: see adversarial.
func lossNamed(name string, entities float64, margin, alpha float32) (loss, error) {
	switch {
	case name == Softmax:
		return softmax(entities), nil
	case name == Logistic && alpha > 0:
		return adversarial(margin, alpha), nil
	case name == Logistic:
		return logistic(margin), nil
	}
	return nil, fmt.Errorf("kge: no loss is called %q, want %s or %s", name, Softmax, Logistic)
}

// softmax is the cross-entropy of the positive among itself and the negatives:
// log(e^pos + w·Σe^neg) − pos with w = entities/n of n draws.
func softmax(entities float64) loss {
	return func(pos float32, neg []float32, d *draws, _ []float32) (float32, float32) {
		if len(neg) == 0 {
			return 0, 0
		}
		// Instead of raising all negatives by log w, lower the positive.
		pos -= float32(math.Log(entities / float64(d.n)))
		top := max(pos, vec.Max(neg))
		p := float32(math.Exp(float64(pos - top)))
		z := p + vec.ExpSum(neg, top)
		z += d.multiply(neg)
		vec.Scale(neg, 1/z)
		return float32(math.Log(float64(z))) - (pos - top), p/z - 1
	}
}

// logistic is softplus(−pos) plus the mean of softplus(neg).
func logistic(margin float32) loss {
	return func(pos float32, neg []float32, d *draws, _ []float32) (float32, float32) {
		l, gpos := ofPositive(pos + margin)
		if len(neg) == 0 {
			return l, gpos
		}
		inv := 1 / float32(d.n)
		for i := range neg {
			neg[i] += margin
		}
		var again float32
		for _, r := range d.again {
			again += r.more * softplus(neg[r.negative])
		}
		l += inv * (float32(vec.SumSoftplus(neg)) + again)
		d.multiply(neg)
		vec.Scale(neg, inv)
		return l, gpos
	}
}

// adversarial is softplus(−pos) plus the sum of w·softplus(neg), where w are the
// softmax of alpha·neg, whose sum is 1 (Sun et al., ICLR 2019, equation 5). The
// gradients take the weights for constants.
func adversarial(margin, alpha float32) loss {
	return func(pos float32, neg []float32, d *draws, weights []float32) (float32, float32) {
		l, gpos := ofPositive(pos + margin)
		top := vec.Max(neg)
		if top == minusInf { // there is no negative
			clear(neg)
			return l, gpos
		}
		weights = weights[:len(neg)]
		for i, x := range neg {
			weights[i] = alpha * (x - top)
			neg[i] = x + margin
		}
		sum := vec.ExpSum(weights, 0)
		sum += d.multiply(weights)
		vec.Scale(weights, 1/sum)
		var over float32
		for i, x := range neg {
			over += weights[i] * vec.Positive(x)
		}
		vec.Sigmoid(neg, neg)
		l += over + minusLogOfLarger(weights, neg)
		vec.Mul(neg, neg, weights)
		return l, gpos
	}
}

// abs has no branch, which would be guessed wrong.
func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// ofPositive is softplus(−pos) with its gradient.
func ofPositive(pos float32) (l, g float32) {
	return softplus(-pos), -1 / (1 + float32(math.Exp(float64(pos))))
}

// minusLogOfLarger is −Σ w·log max(σ, 1−σ). A logarithm of x = 1/2 … 1 is
// −2·artanh z of z = (1−x)/(1+x), whose series has an error below 2·10⁻⁶ of the
// result after five terms, as z is at most 1/3.
func minusLogOfLarger(weights, sigmoids []float32) float32 {
	weights = weights[:len(sigmoids)]
	var sum float32
	for i, s := range sigmoids {
		d := abs(s - 0.5)
		z := (0.5 - d) / (1.5 + d)
		y := z * z
		sum += weights[i] * z * (1 + y*(1./3+y*(1./5+y*(1./7+y*(1./9)))))
	}
	return 2 * sum
}

// softplus is log(1 + eˣ), without overflow.
func softplus(x float32) float32 {
	return max(x, 0) + float32(math.Log1p(math.Exp(-math.Abs(float64(x)))))
}

// sumOf adds in four lanes, which a processor can do at once.
func sumOf(x []float32) float32 {
	var a, b, c, d float32
	for len(x) >= 4 {
		a, b, c, d = a+x[0], b+x[1], c+x[2], d+x[3]
		x = x[4:]
	}
	for _, v := range x {
		a += v
	}
	return a + b + (c + d)
}
