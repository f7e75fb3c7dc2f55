package kge

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/vec"
)

// transE is TransE (Bordes et al., NIPS 2013, equation 1): the score of
// (s, r, o) is −‖s + r − o‖, here with the Euclidean norm, which a matrix
// product can compute for many candidates.
type transE struct{}

func (transE) name() string                         { return "transe" }
func (transE) check(int) error                      { return nil }
func (transE) relationDim(dim int) int              { return dim }
func (transE) relationInit(std float32) godwit.Init { return godwit.Normal{Std: std} }
func (transE) distance() bool                       { return true }

func (transE) layout() layout {
	return layout{"a vector", "a vector", "-np.linalg.norm(s + r - o)"}
}

// query is s + r for objects and o − r for subjects.
func (transE) query(q, e, r []float32, subjects bool) {
	copy(q, e)
	if subjects {
		vec.Sub(q, r)
	} else {
		vec.Add(q, r)
	}
}

func (transE) backward(ge, gr, _, _, gq []float32, subjects bool) {
	vec.Add(ge, gq)
	if subjects {
		vec.Sub(gr, gq)
	} else {
		vec.Add(gr, gq)
	}
}
