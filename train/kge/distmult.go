package kge

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/vec"
)

// distMult is DistMult (Yang et al., ICLR 2015, equation 3 with a diagonal
// matrix): the score of (s, r, o) is Σ s·r·o. It is symmetric in s and o.
type distMult struct{}

func (distMult) name() string                         { return "distmult" }
func (distMult) check(int) error                      { return nil }
func (distMult) relationDim(dim int) int              { return dim }
func (distMult) relationInit(std float32) godwit.Init { return godwit.Normal{Std: std} }
func (distMult) distance() bool                       { return false }

func (distMult) layout() layout { return layout{"a vector", "a vector", "np.sum(s * r * o)"} }

func (distMult) query(q, e, r []float32, _ bool) { vec.Mul(q, e, r) }

func (distMult) backward(ge, gr, e, r, gq []float32, _ bool) {
	vec.AddMul(ge, r, gq)
	vec.AddMul(gr, e, gq)
}

func (distMult) n3(g, x []float32, w float32) { realN3(g, x, w) }
