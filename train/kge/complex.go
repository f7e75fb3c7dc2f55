package kge

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/vec"
)

// complEx is ComplEx (Trouillon et al., ICML 2016, equation 11): the score of
// (s, r, o) is Re(Σ s·r·ō) over complex vectors. All vectors hold the real
// parts, then the imaginary parts, so that Re⟨a, b̄⟩ is their dot product.
type complEx struct{}

func (complEx) name() string                         { return "complex" }
func (complEx) check(dim int) error                  { return evenDim("complex", dim) }
func (complEx) relationDim(dim int) int              { return dim }
func (complEx) relationInit(std float32) godwit.Init { return godwit.Normal{Std: std} }
func (complEx) distance() bool                       { return false }

func (complEx) layout() layout {
	return layout{complexLayout, complexLayout, "np.real(np.sum(s * r * np.conj(o))), of complex vectors"}
}

// query is s∘r for objects and r̄∘o for subjects: Re(s·r·ō) = Re(r̄·o·s̄).
func (complEx) query(q, e, r []float32, subjects bool) {
	if subjects {
		vec.MulConj(q, r, e)
	} else {
		vec.MulComplex(q, e, r)
	}
}

func (complEx) backward(ge, gr, e, r, gq []float32, subjects bool) {
	if subjects {
		vec.AddMulComplex(ge, r, gq)
		vec.AddMulConj(gr, gq, e)
	} else {
		vec.AddMulConj(ge, r, gq)
		vec.AddMulConj(gr, e, gq)
	}
}

func (complEx) n3(g, x []float32, w float32) { complexN3(g, x, w) }
