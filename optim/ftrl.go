package optim

import (
	"fmt"
	"math"
)

// FTRLBeta is the Beta of an [FTRL] that names none.
const FTRLBeta = 1

// FTRL is FTRL-Proximal (McMahan et al., "Ad Click Prediction: a View from the
// Trenches", KDD 2013, algorithm 1): follow the regularized leader with a
// learning rate of its own for each coordinate, and weights that are exactly
// zero where the evidence does not outweigh L1. The state is two sums, z and n
// (dim floats each), and the value follows from them. For a gradient g:
//
//	σ = (√(n+g²) - √n) / LR
//	z += g - σ·w
//	n += g²
//	w = 0                                            where |z| ≤ L1
//	w = -(z - sgn(z)·L1) / ((Beta + √n)/LR + L2)     elsewhere
//
// L1 and L2 weigh against gradients that are summed, not averaged, over
// examples.
//
// Copies merge by their sums, and the value follows, so that merged weights are
// sparse like those of one row; what differs is that each σ was computed from
// the n and w of its own copy.
//
// Rows are meant to start at zero. A value that was set, or initialized
// otherwise, is where the first push starts from: it is put into z then. If two
// copies see a first push in the same round it is put there twice, and if a push
// that was made at a copy before a Set reaches the owner after it, the value
// follows from that push instead: set values while nobody pushes.
type FTRL struct {
	LR     float32 // α of the paper, > 0
	Beta   float32 // β of the paper; 0 means FTRLBeta
	L1, L2 float32 // λ₁ and λ₂ of the paper, ≥ 0
}

// Name returns the rule and its parameters, such as
// "ftrl(lr=0.1,beta=1,l1=1,l2=0)".
func (r FTRL) Name() string {
	return fmt.Sprintf("ftrl(lr=%v,beta=%v,l1=%v,l2=%v)", r.LR, orElse(r.Beta, FTRLBeta), r.L1, r.L2)
}

// StateLen returns 2·dim: the sums z and n.
func (r FTRL) StateLen(dim int) int { return 2 * dim }

// InitState clears the sums.
func (r FTRL) InitState(state []float32) { clear(state) }

// Apply takes one pushed gradient into the sums and derives the value.
func (r FTRL) Apply(value, state, push []float32) {
	z, n := state[:len(value)], state[len(value):2*len(value)]
	push = push[:len(value)]
	beta := orElse(r.Beta, FTRLBeta)
	for i, g := range push {
		if z[i] == 0 && n[i] == 0 && value[i] != 0 {
			z[i] = r.sumOf(value[i], beta)
		}
		w := r.weight(z[i], n[i], beta)
		root := sqrt(n[i])
		n[i] += g * g
		z[i] += g - (sqrt(n[i])-root)/r.LR*w
		value[i] = r.weight(z[i], n[i], beta)
	}
}

// Pack clears the difference of the value: what pushes did is in the sums.
func (r FTRL) Pack(_, _, dvalue []float32) { clear(dvalue) }

// Merge derives the value from the sums. A row that saw no push keeps its value.
func (r FTRL) Merge(value, state, _ []float32) {
	z, n := state[:len(value)], state[len(value):2*len(value)]
	beta := orElse(r.Beta, FTRLBeta)
	for i := range value {
		if z[i] != 0 || n[i] != 0 {
			value[i] = r.weight(z[i], n[i], beta)
		}
	}
}

// Fresh returns 3·dim: a value that is derived from sums without those of other
// copies' pushes would be one without their effect.
func (r FTRL) Fresh(dim int) int { return 3 * dim }

// weight is the value that follows from the sums.
func (r FTRL) weight(z, n, beta float32) float32 {
	over := shrink(z, r.L1)
	if over == 0 {
		return 0
	}
	return -over / ((beta+sqrt(n))/r.LR + r.L2)
}

// sumOf is the z of a row without history whose value is w.
func (r FTRL) sumOf(w, beta float32) float32 {
	return -w*(beta/r.LR+r.L2) - float32(math.Copysign(float64(r.L1), float64(w)))
}

// shrink moves x towards zero by at most by, and never past it: the proximal
// operator of by·|x|.
func shrink(x, by float32) float32 {
	switch {
	case x > by:
		return x - by
	case x < -by:
		return x + by
	}
	return 0
}
