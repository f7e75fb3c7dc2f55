package optim

import (
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/vec"
)

// A Rated rule is one whose pushes bring their learning rate, so that it may change from
// push to push: the last float of a push is the rate, those before it are the gradient. A
// value of the table has a float in that place too, which the initializer and Set should make
// 0 and which no push changes. So a table with gradients of 64 floats has a Dim of 65.
// As the sum of two pushes brings the sum of their rates, the rules are not additive: filters
// may neither change pushes nor put off parts of them, and no push is rounded.
//
// The rules take no parameter lr. They are "ratedsgd", "ratedadagrad", "ratedrowadagrad" and
// "ratedadam", which step as the rule that the name ends with, and "sparseadam".
type Rated interface {
	godwit.NonAdditive
	Rated() // marks the rule
}

// Unrated initializes the values of a table with a [Rated] rule: as Of does, but for the float by which rates come, which is 0.
type Unrated struct {
	Of godwit.Init // of the other floats; it must be there
}

// Name returns "unrated " and the name of Of.
func (u Unrated) Name() string {
	if u.Of == nil {
		return "unrated nil"
	}
	return "unrated " + u.Of.Name()
}

// Check returns that there is no Of, or what is wrong with it, if that says it.
func (u Unrated) Check() error {
	if u.Of == nil {
		return errors.New("no initializer of the other floats, want one, such as Zero")
	}
	if c, ok := u.Of.(interface{ Check() error }); ok {
		return c.Check()
	}
	return nil
}

// Init makes the value.
func (u Unrated) Init(value []float32, seed uint64, k godwit.Key) {
	n := len(value) - 1
	value[n] = 0
	u.Of.Init(value[:n], seed, k)
}

// Widen writes vectors of dim floats to dst, each with a rate behind it, as a push to a [Rated] rule has it. It returns the rest of
// dst, which is another memory than that of the vectors.
func Widen(dst, vectors []float32, dim int, rate float32) []float32 {
	for ; len(vectors) > 0; vectors = vectors[dim:] {
		copy(dst, vectors[:dim])
		dst[dim] = rate
		dst = dst[dim+1:]
	}
	return dst
}

// Narrow writes values of dim floats to dst without the float by which rates come, which wide has behind each. dst may begin where wide does, or
// before, in the same memory.
func Narrow(dst, wide []float32, dim int) {
	for ; len(wide) > 0; wide = wide[dim+1:] {
		copy(dst, wide[:dim])
		dst = dst[dim:]
	}
}

// RatedSGD is [SGD] by the rate of each push.
type RatedSGD struct{}

// Name returns "ratedsgd".
func (RatedSGD) Name() string { return "ratedsgd" }

// StateLen returns 0.
func (RatedSGD) StateLen(int) int { return 0 }

// InitState does nothing.
func (RatedSGD) InitState([]float32) {}

// Apply makes one step against the pushed gradient.
func (RatedSGD) Apply(value, state, push []float32) {
	value, g, lr := rated(value, push)
	SGD{LR: lr}.Apply(value, state, g)
}

// Rated marks the rule.
func (RatedSGD) Rated() {}

// CheckDim returns an error if a push has no float beside its rate.
func (RatedSGD) CheckDim(dim int) error { return ratedDim(dim) }

func ratedDim(dim int) error {
	if dim < 2 {
		return fmt.Errorf("values of %d float, want 2 or more: the last one of a push is its rate", dim)
	}
	return nil
}

// NonAdditive says that rates do not add up.
func (RatedSGD) NonAdditive() {}

// rated takes the rate out of a push.
func rated(value, push []float32) (v, g []float32, lr float32) {
	n := len(value) - 1
	return value[:n:n], push[:n:n], push[n]
}

// RatedAdaGrad is [AdaGrad] by the rate of each push. Its LR is not used.
type RatedAdaGrad struct{ AdaGrad }

// Name returns the rule and its parameters, such as "ratedadagrad(eps=1e-10,init=0)".
func (r RatedAdaGrad) Name() string {
	return fmt.Sprintf("ratedadagrad(eps=%v,init=%v)", orElse(r.Eps, AdaGradEps), r.Init)
}

// StateLen returns an accumulator for each coordinate of the gradient.
func (r RatedAdaGrad) StateLen(dim int) int { return dim - 1 }

// Check returns which parameter is out of its range.
func (r RatedAdaGrad) Check() error { return adagrad(1, r.Eps, r.Init) }

// Apply makes one step against the pushed gradient.
func (r RatedAdaGrad) Apply(value, state, push []float32) {
	value, g, lr := rated(value, push)
	vec.AdaGrad(value, state, g, lr, orElse(r.Eps, AdaGradEps))
}

// Pack is that of [AdaGrad], which depends on no rate.
func (r RatedAdaGrad) Pack(value, state, dvalue []float32) {
	r.AdaGrad.Pack(value, state, dvalue[:len(dvalue)-1])
}

// Merge is that of [AdaGrad].
func (r RatedAdaGrad) Merge(value, state, dvalue []float32) {
	n := len(value) - 1
	r.AdaGrad.Merge(value[:n], state, dvalue[:n])
}

// Rated marks the rule.
func (RatedAdaGrad) Rated() {}

// CheckDim returns an error if a push has no float beside its rate.
func (RatedAdaGrad) CheckDim(dim int) error { return ratedDim(dim) }

// NonAdditive says that rates do not add up.
func (RatedAdaGrad) NonAdditive() {}

// RatedRowAdaGrad is [RowAdaGrad] by the rate of each push. Its LR is not used. Copies merge as those of [RowAdaGrad]: no push
// changes the float of the rate, and so no merge does.
type RatedRowAdaGrad struct{ RowAdaGrad }

// Name returns the rule and its parameters, such as "ratedrowadagrad(eps=1e-10,init=0)".
func (r RatedRowAdaGrad) Name() string {
	return fmt.Sprintf("ratedrowadagrad(eps=%v,init=%v)", orElse(r.Eps, AdaGradEps), r.Init)
}

// Check returns which parameter is out of its range.
func (r RatedRowAdaGrad) Check() error { return adagrad(1, r.Eps, r.Init) }

// Apply makes one step against the pushed gradient.
func (r RatedRowAdaGrad) Apply(value, state, push []float32) {
	value, g, lr := rated(value, push)
	r.LR = lr
	r.RowAdaGrad.Apply(value, state, g)
}

// Rated marks the rule.
func (RatedRowAdaGrad) Rated() {}

// CheckDim returns an error if a push has no float beside its rate.
func (RatedRowAdaGrad) CheckDim(dim int) error { return ratedDim(dim) }

// NonAdditive says that rates do not add up.
func (RatedRowAdaGrad) NonAdditive() {}

// RatedAdam is [Adam] by the rate of each push. Its LR is not used.
type RatedAdam struct{ Adam }

// Name returns the rule and its parameters, such as "ratedadam(b1=0.9,b2=0.999,eps=1e-08)".
func (r RatedAdam) Name() string {
	a := r.filled()
	return fmt.Sprintf("ratedadam(b1=%v,b2=%v,eps=%v)", a.B1, a.B2, a.Eps)
}

// StateLen returns the two means of the gradient, and the number of steps.
func (r RatedAdam) StateLen(dim int) int { return r.Adam.StateLen(dim - 1) }

// Check returns which parameter is out of its range.
func (r RatedAdam) Check() error { r.LR = 1; return r.Adam.Check() }

// Apply makes one step against the pushed gradient.
func (r RatedAdam) Apply(value, state, push []float32) {
	value, g, lr := rated(value, push)
	r.LR = lr
	r.Adam.Apply(value, state, g)
}

// Rated marks the rule.
func (RatedAdam) Rated() {}

// CheckDim returns an error if a push has no float beside its rate.
func (RatedAdam) CheckDim(dim int) error { return ratedDim(dim) }

// NonAdditive says that rates do not add up.
func (RatedAdam) NonAdditive() {}

// SparseAdam is [Adam] whose corrections for the start at zero are in the rate that a push
// brings, so that whoever pushes counts the steps, of all rows together:
// x -= rate·m/(√v + Eps). With rate = lr·√(1-B2ᵗ)/(1-B1ᵗ) it is the lazy version of Adam for
// sparse gradients, in which the steps of a table are counted and not those of a row.
//
// The state is m and v. What merging copies makes of them is said at Adam, and gradients and steps are
// bounded as there.
type SparseAdam struct {
	B1, B2 float32 // as those of Adam
	Eps    float32 // added to the root; 0 means AdamEps
}

// Name returns the rule and its parameters, such as "sparseadam(b1=0.9,b2=0.999,eps=1e-08)".
func (r SparseAdam) Name() string {
	a := r.adam()
	return fmt.Sprintf("sparseadam(b1=%v,b2=%v,eps=%v)", a.B1, a.B2, a.Eps)
}

// StateLen returns the two means of the gradient.
func (r SparseAdam) StateLen(dim int) int { return 2 * (dim - 1) }

// InitState clears the state.
func (r SparseAdam) InitState(state []float32) { clear(state) }

// Check returns which parameter is out of its range.
func (r SparseAdam) Check() error {
	return Adam{LR: 1, B1: r.B1, B2: r.B2, Eps: r.Eps}.Check()
}

// Apply makes one step against the pushed gradient.
func (r SparseAdam) Apply(value, state, push []float32) {
	value, g, lr := rated(value, push)
	n, a := len(value), r.adam()
	vec.Adam(value, state[:n], state[n:2*n], clipped(g), &vec.AdamStep{LR: lr, B1: a.B1, B2: a.B2, Eps: a.Eps, C1: 1, C2: 1, Limit: a.limit()})
}

func (r SparseAdam) adam() Adam { return Adam{B1: r.B1, B2: r.B2, Eps: r.Eps}.filled() }

// Rated marks the rule.
func (SparseAdam) Rated() {}

// CheckDim returns an error if a push has no float beside its rate.
func (SparseAdam) CheckDim(dim int) error { return ratedDim(dim) }

// NonAdditive says that rates do not add up.
func (SparseAdam) NonAdditive() {}
