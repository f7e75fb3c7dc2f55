package optim

import (
	"fmt"
	"math"
)

// FTRLBeta is the default Beta of an [FTRL].
const FTRLBeta = 1

// FTRL is FTRL-Proximal (McMahan et al., "Ad Click Prediction: a View from the
// Trenches", KDD 2013, algorithm 1): follow the regularized leader with a
// learning rate of its own for each coordinate, and weights that are exactly
// zero where the evidence does not outweigh L1. A row keeps two sums, z in the
// place of the value and n as its state (dim floats each), and pulls get the
// weights w that follow from them. For a gradient g:
//
//	w = 0                                            where |z| ≤ L1
//	w = -(z - sgn(z)·L1) / ((Beta + √n)/LR + L2)     elsewhere
//	σ = (√(n+g²) - √n) / LR
//	z += g - σ·w
//	n += g²
//
// L1 and L2 weigh against gradients that are summed, not averaged, over
// examples.
//
// Copies merge by adding up their sums, and the weights follow, so that those of
// merged rows are as sparse as those of one row; what differs is that each σ was
// computed from the sums of its own copy.
//
// A weight that was set, or initialized, is kept as the z from which it follows. A coordinate of a
// gradient counts as ±2⁴⁷ at most, so that no square overflows.
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

// StateLen returns dim: the sum n.
func (r FTRL) StateLen(dim int) int { return dim }

// InitState clears the sum n.
func (r FTRL) InitState(state []float32) { clear(state) }

// Apply takes one pushed gradient into the sums.
func (r FTRL) Apply(z, n, push []float32) {
	n, push = n[:len(z)], push[:len(z)]
	base := r.base()
	for i, g := range push {
		g, square := clip(g)
		root := sqrt(n[i])
		n[i] += square
		// σ·w, in which LR cancels
		z[i] += g + (sqrt(n[i])-root)*shrink(z[i], r.L1)/(base+root)
	}
}

// Query computes the weights from the sums.
func (r FTRL) Query(dst, z, n []float32) {
	z, n = z[:len(dst)], n[:len(dst)]
	base := r.base()
	for i := range dst {
		dst[i] = 0 - r.LR*shrink(z[i], r.L1)/(base+sqrt(n[i])) // from 0, so that no weight is -0
	}
}

// Keep computes the sums z of weights, for n = 0.
func (r FTRL) Keep(value, _ []float32) {
	base := r.base()
	for i, w := range value {
		if w != 0 {
			value[i] = -w*base/r.LR - float32(math.Copysign(float64(r.L1), float64(w)))
		}
	}
}

// base is what a weight is divided by, times LR, where n = 0.
func (r FTRL) base() float32 { return orElse(r.Beta, FTRLBeta) + float32(r.L2*r.LR) }

// shrink moves x towards zero by at most by, and never past it: the proximal
// operator of by·|x|. It does not branch, since no processor can guess signs, or which weights are zero.
func shrink(x, by float32) float32 {
	const sign = 1 << 31
	bits := math.Float32bits(x)
	over := math.Float32frombits(bits&^sign) - by
	shrunk := math.Float32bits(over) | bits&sign
	if !(over > 0) { // a choice between numbers, which takes no branch
		shrunk = 0
	}
	return math.Float32frombits(shrunk)
}
