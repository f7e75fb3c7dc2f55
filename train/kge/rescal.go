package kge

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/vec"
)

// rescal is RESCAL (Nickel, Tresp, Kriegel, ICML 2011): the score of (s, r, o)
// is sᵀ·R·o with a dim × dim matrix R for each relation, stored by rows.
type rescal struct{}

func (rescal) name() string            { return "rescal" }
func (rescal) check(int) error         { return nil }
func (rescal) relationDim(dim int) int { return dim * dim }
func (rescal) distance() bool          { return false }

func (rescal) relationInit(std float32) godwit.Init { return godwit.Normal{Std: std} }

func (rescal) layout() layout {
	return layout{"a vector", "a matrix by rows: x.reshape(-1, dim, dim)", "s @ R @ o"}
}

// query is Rᵀ·s for objects and R·o for subjects.
func (rescal) query(q, e, r []float32, subjects bool) {
	d := len(e)
	if subjects {
		vec.MulABt(q, e, r, 1, d, d)
	} else {
		clear(q)
		vec.AddMulAB(q, e, r, 1, d, d)
	}
}

func (rescal) backward(ge, gr, e, r, gq []float32, subjects bool) {
	d := len(e)
	if subjects {
		vec.AddMulAB(ge, gq, r, 1, d, d)
		vec.AddMulAtB(gr, gq, e, 1, d, d)
		return
	}
	for i := range d {
		ge[i] += vec.Dot(r[i*d:(i+1)*d], gq)
	}
	vec.AddMulAtB(gr, e, gq, 1, d, d)
}

func (rescal) n3(g, x []float32, w float32) { realN3(g, x, w) }
