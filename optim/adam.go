package optim

import (
	"fmt"
	"math"

	"github.com/godwit-ps/godwit/internal/vec"
)

// The default parameters of an [Adam], as its paper suggests.
const (
	AdamB1  = 0.9
	AdamB2  = 0.999
	AdamEps = 1e-8
)

// Adam steps by the decaying mean of the gradients over the root of that of
// their squares, both corrected for their start at zero (Kingma, Ba 2015,
// algorithm 1). A row counts its own steps, so a row that is pushed for the
// first time late in a run is corrected as at the beginning.
//
// The state is m (dim floats), v (dim floats) and the number of steps t. The
// means are not sums, so a merge of copies (see the package comment) is not
// what one row would have:
//
//   - t is the number of all pushes, exactly, up to 2²⁴ (where it stays, long
//     after the corrections have become 1).
//   - Copies from a common mean m0 that saw k1 and k2 pushes merge to
//     (B1^k1 + B1^k2 - 1)·m0 and each copy's own new part, where one row would
//     have B1^(k1+k2)·m0 and a more decayed part of the first copy. The two
//     agree to first order in (1-B1)·k: merging suits copies that see fewer
//     than about 1/(1-B1) pushes between two rounds. After more, m may
//     overshoot: with n copies to at most n-1 times m0, reversed. It decays as
//     always once the copies agree.
//   - v merges alike with B2, and may come out negative. Apply takes negative
//     entries as 0.
//   - A large m over a v that merging made too small would be a huge step.
//     Apply therefore cuts a step to LR·(1-B1)/√((1-B2)·(1-B1²/B2)), 7.3·LR by
//     default, which no serial run exceeds (by Cauchy and Schwarz). So whatever
//     was merged, no step is longer than the longest possible serial one.
//
// A coordinate of a gradient counts as ±2⁴⁷ at most, so that no square overflows.
type Adam struct {
	LR     float32 // learning rate, > 0
	B1, B2 float32 // decay of the means, 0 ≤ B1 and B1² < B2 < 1; 0 means AdamB1, AdamB2
	Eps    float32 // added to the root; 0 means AdamEps
}

// Name returns the rule and its parameters, such as
// "adam(lr=0.001,b1=0.9,b2=0.999,eps=1e-08)".
func (r Adam) Name() string {
	r = r.filled()
	return fmt.Sprintf("adam(lr=%v,b1=%v,b2=%v,eps=%v)", r.LR, r.B1, r.B2, r.Eps)
}

// StateLen returns 2·dim+1: the two means and the number of steps.
func (r Adam) StateLen(dim int) int { return 2*dim + 1 }

// InitState clears the state.
func (r Adam) InitState(state []float32) { clear(state) }

// Apply makes one step against the pushed gradient.
func (r Adam) Apply(value, state, push []float32) {
	r = r.filled()
	n := len(value)
	t := max(state[2*n]+1, 1)
	state[2*n] = t
	vec.Adam(value, state[:n], state[n:2*n], clipped(push), &vec.AdamStep{
		LR: r.LR, B1: r.B1, B2: r.B2, Eps: r.Eps,
		C1: correction(r.B1, t), C2: correction(r.B2, t),
		Limit: r.limit(),
	})
}

// correction is 1/(1-bᵗ), taken over the logarithm because b is near 1. Since
// bᵗ ≤ e^(-t·(1-b)), it rounds to 1 from t·(1-b) = 18 on.
func correction(b, t float32) float32 {
	if t*(1-b) >= 18 {
		return 1
	}
	return float32(-1 / math.Expm1(float64(t)*math.Log(float64(b))))
}

// limit is the bound of a serial step in units of LR, and a little more for
// rounding. With m = (1-B1)·Σ B1ⁱ·g and v = (1-B2)·Σ B2ⁱ·g², the inequality of
// Cauchy and Schwarz bounds m by (1-B1)·√(Σ (B1²/B2)ⁱ)·√(v/(1-B2)). This is the
// value for endless sums; for t terms the bound, with the corrections for t,
// is smaller.
func (r Adam) limit() float32 {
	b1, b2 := float64(r.B1), float64(r.B2)
	return float32(1.001 * (1 - b1) / math.Sqrt((1-b2)*(1-b1*b1/b2)))
}

func (r Adam) filled() Adam {
	r.B1 = orElse(r.B1, AdamB1)
	r.B2 = orElse(r.B2, AdamB2)
	r.Eps = orElse(r.Eps, AdamEps)
	return r
}
