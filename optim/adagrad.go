package optim

import (
	"fmt"
	"math"

	"github.com/godwit-ps/godwit/internal/vec"
)

// AdaGradEps is the default Eps of an [AdaGrad] or [RowAdaGrad]. It prevents a division
// by zero where all gradients were zero, and is too small to shorten any other step.
const AdaGradEps = 1e-10

// AdaGrad scales each coordinate's steps by the root of its summed squared
// gradients (Duchi, Hazan, Singer, JMLR 2011, the version with diagonal matrices):
// s += g²; x -= LR·g/(√s + Eps). The sum is at most math.MaxFloat32, and includes the
// current gradient, so with Init 0 the first step has length LR.
type AdaGrad struct {
	LR   float32 // learning rate, > 0
	Eps  float32 // added to the root; 0 means AdaGradEps
	Init float32 // accumulators of a new row, ≥ 0: larger ones dampen the first steps
}

// Name returns the rule and its parameters, such as
// "adagrad(lr=0.1,eps=1e-10,init=0)".
func (r AdaGrad) Name() string {
	return fmt.Sprintf("adagrad(lr=%v,eps=%v,init=%v)", r.LR, orElse(r.Eps, AdaGradEps), r.Init)
}

// StateLen returns dim: an accumulator for each coordinate.
func (r AdaGrad) StateLen(dim int) int { return dim }

// InitState sets the accumulators to r.Init.
func (r AdaGrad) InitState(state []float32) { fill(state, r.Init) }

// Apply makes one step against the pushed gradient.
func (r AdaGrad) Apply(value, state, push []float32) {
	vec.AdaGrad(value, state, push, r.LR, orElse(r.Eps, AdaGradEps))
}

// Pack multiplies what the pushes did to the value by the root of the copy's
// accumulators, which leaves LR·gradient of a single push, and a sum of
// gradients weighted by at most the growth of the root for several.
func (r AdaGrad) Pack(_, state, dvalue []float32) {
	vec.MulRoot(dvalue, state, orElse(r.Eps, AdaGradEps))
}

// Merge makes the packed step by the root of what all pushes have accumulated.
func (r AdaGrad) Merge(value, state, dvalue []float32) {
	bound(state)
	vec.AddDivRoot(value, state, dvalue, orElse(r.Eps, AdaGradEps))
}

// Fresh returns dim: what [AdaGrad.Merge] makes of a push does not depend on
// the accumulators that the copy had.
func (r AdaGrad) Fresh(dim int) int { return dim }

// Roundable says that values and gradients may be rounded on a slow network.
func (r AdaGrad) Roundable() {}

// RowAdaGrad is AdaGrad with one accumulator for the whole row, which sums the
// mean of the squared gradients: a dim-th of AdaGrad's state and traffic, for
// rows whose coordinates have gradients of like size, such as embeddings.
type RowAdaGrad struct {
	LR   float32 // learning rate, > 0
	Eps  float32 // added to the root; 0 means AdaGradEps
	Init float32 // accumulator of a new row, ≥ 0
}

// Name returns the rule and its parameters, such as
// "rowadagrad(lr=0.1,eps=1e-10,init=0)".
func (r RowAdaGrad) Name() string {
	return fmt.Sprintf("rowadagrad(lr=%v,eps=%v,init=%v)", r.LR, orElse(r.Eps, AdaGradEps), r.Init)
}

// StateLen returns 1: the accumulator of the row.
func (r RowAdaGrad) StateLen(int) int { return 1 }

// InitState sets the accumulator to r.Init.
func (r RowAdaGrad) InitState(state []float32) { fill(state, r.Init) }

// Apply makes one step against the pushed gradient.
func (r RowAdaGrad) Apply(value, state, push []float32) {
	state[0] = min(state[0]+vec.SquaredNorm(push)/float32(len(push)), math.MaxFloat32)
	vec.AXPY(value, -r.LR/(sqrt(state[0])+orElse(r.Eps, AdaGradEps)), push)
}

// Pack is that of [AdaGrad].
func (r RowAdaGrad) Pack(_, state, dvalue []float32) {
	vec.Scale(dvalue, sqrt(state[0])+orElse(r.Eps, AdaGradEps))
}

// Merge is that of [AdaGrad].
func (r RowAdaGrad) Merge(value, state, dvalue []float32) {
	bound(state)
	vec.AXPY(value, 1/(sqrt(state[0])+orElse(r.Eps, AdaGradEps)), dvalue)
}

// Fresh returns dim+1: the state is not worth leaving out.
func (r RowAdaGrad) Fresh(dim int) int { return dim + 1 }

// Roundable is that of [AdaGrad].
func (r RowAdaGrad) Roundable() {}

// bound brings sums of accumulators that have overflowed back to the largest number. The difference of
// two infinite ones, and zero times the root of one, would be no numbers, and end in the value.
func bound(state []float32) {
	if len(state) > 16 && vec.Max(state) <= math.MaxFloat32 {
		return
	}
	for i, s := range state {
		if s > math.MaxFloat32 {
			state[i] = math.MaxFloat32
		}
	}
}

// largest is what a coordinate of a gradient counts in magnitude at most, in rules whose copies merge by adding up sums of
// squares and that have no place to bring these back ([bound]). Even of as many copies as there may be nodes, each of which takes away what
// all have added, the sums are finite; they grow beyond float32 after 2³⁴ such gradients only.
const largest = 1 << 47

// clip returns a coordinate of a gradient as it counts, and its square. What is not finite stays: it is to be seen.
func clip(g float32) (counts, square float32) {
	if square = float32(g * g); square > largest*largest && g-g == 0 {
		g = min(max(g, -largest), largest)
		square = float32(g * g)
	}
	return g, square
}

// clipped returns a gradient as it counts: itself, or, where a coordinate is beyond largest, another one.
func clipped(push []float32) []float32 {
	if vec.SquaredNorm(push) <= largest*largest {
		return push
	}
	counts := make([]float32, len(push))
	for i, g := range push {
		counts[i], _ = clip(g)
	}
	return counts
}

func orElse(x, zero float32) float32 {
	if x == 0 {
		return zero
	}
	return x
}

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func fill(s []float32, x float32) {
	for i := range s {
		s[i] = x
	}
}
