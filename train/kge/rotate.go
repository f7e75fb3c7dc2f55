package kge

import (
	"math"

	"github.com/godwit-ps/godwit"
)

// rotatE is RotatE (Sun et al., ICLR 2019, equation 3): the score of (s, r, o)
// is −‖s∘r − o‖ over complex vectors, where each element of r has modulus 1 and
// is stored as its phase. The norm is the Euclidean one, which a matrix product
// can compute for many candidates; the paper sums moduli, which learns more
// slowly here. Entities hold the real parts, then the imaginary parts.
type rotatE struct{}

func (rotatE) name() string            { return "rotate" }
func (rotatE) check(dim int) error     { return evenDim("rotate", dim) }
func (rotatE) relationDim(dim int) int { return dim / 2 }
func (rotatE) distance() bool          { return true }

func (rotatE) relationInit(float32) godwit.Init {
	return godwit.Uniform{Lo: -math.Pi, Hi: math.Pi}
}

func (rotatE) layout() layout {
	return layout{complexLayout, "phases in radians, dim//2 of them: the complex vector is np.exp(1j*x)", "-np.linalg.norm(s * r - o), of complex vectors"}
}

// query rotates s by r for objects, and o by the inverse of r for subjects.
func (rotatE) query(q, e, r []float32, subjects bool) {
	h := len(r)
	for k, phase := range r {
		sin, cos := sincos(phase, subjects)
		q[k] = e[k]*cos - e[h+k]*sin
		q[h+k] = e[k]*sin + e[h+k]*cos
	}
}

func (rotatE) backward(ge, gr, e, r, gq []float32, subjects bool) {
	h := len(r)
	for k, phase := range r {
		sin, cos := sincos(phase, subjects)
		re, im := gq[k], gq[h+k]
		ge[k] += re*cos + im*sin
		ge[h+k] += im*cos - re*sin
		// The phase rotates the query q: dq/dφ = i·q, or −i·q for the inverse
		// rotation.
		turn := im*(e[k]*cos-e[h+k]*sin) - re*(e[k]*sin+e[h+k]*cos)
		if subjects {
			turn = -turn
		}
		gr[k] += turn
	}
}

func sincos(phase float32, back bool) (sin, cos float32) {
	s, c := math.Sincos(float64(phase))
	if back {
		s = -s
	}
	return float32(s), float32(c)
}
