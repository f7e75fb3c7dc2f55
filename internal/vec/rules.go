package vec

// AdaGrad makes one step of AdaGrad (Duchi, Hazan, Singer 2011) with diagonal
// accumulators: acc[i] += grad[i]², at most math.MaxFloat32, then
// value[i] -= lr·grad[i] / (sqrt(acc[i]) + eps).
func AdaGrad(value, acc, grad []float32, lr, eps float32) {
	same3("AdaGrad", len(value), len(acc), len(grad))
	if fast && len(value) >= lanes {
		fastAdaGrad(&value[0], &acc[0], &grad[0], len(value), lr, eps)
		return
	}
	plainAdaGrad(value, acc, grad, lr, eps)
}

// MulRoot multiplies by a root: x[i] *= sqrt(acc[i]) + eps.
func MulRoot(x, acc []float32, eps float32) {
	same("MulRoot", len(x), len(acc))
	if fast && len(x) >= lanes {
		fastMulRoot(&x[0], &acc[0], len(x), eps)
		return
	}
	plainMulRoot(x, acc, eps)
}

// AddDivRoot adds what is divided by a root: dst[i] += x[i] / (sqrt(acc[i]) + eps).
func AddDivRoot(dst, acc, x []float32, eps float32) {
	same3("AddDivRoot", len(dst), len(acc), len(x))
	if fast && len(dst) >= lanes {
		fastAddDivRoot(&dst[0], &acc[0], &x[0], len(dst), eps)
		return
	}
	plainAddDivRoot(dst, acc, x, eps)
}

// An AdamStep holds the constants of one step of [Adam].
type AdamStep struct {
	LR     float32 // learning rate
	B1, B2 float32 // decay of the means of gradients and of squared gradients
	Eps    float32 // added to the divisor
	C1, C2 float32 // bias corrections 1/(1-B1ᵗ) and 1/(1-B2ᵗ) of step t
	Limit  float32 // bound of a step's magnitude, in units of LR; +Inf for none
}

// Adam makes one step of Adam (Kingma, Ba 2015, algorithm 1):
//
//	m[i] = B1·m[i] + (1-B1)·grad[i]
//	v[i] = B2·max(v[i], 0) + (1-B2)·grad[i]²
//	r    = C1·m[i] / (sqrt(C2·v[i]) + Eps), cut to -Limit … Limit
//	value[i] -= LR·r
//
// The maximum and the limit matter only where copies of a row were merged by
// adding what changed in them; see package optim.
func Adam(value, m, v, grad []float32, s *AdamStep) {
	same3("Adam", len(value), len(m), len(v))
	same("Adam", len(value), len(grad))
	if fast && len(value) >= lanes {
		fastAdam(&value[0], &m[0], &v[0], &grad[0], len(value), s.LR, s.B1, s.B2, s.Eps, s.C1, s.C2, s.Limit)
		return
	}
	plainAdam(value, m, v, grad, s)
}
