package vec

// The complex vectors of this file lie split: a slice of 2h floats holds the
// real parts of h numbers, then their imaginary parts.

// MulComplex computes dst = a∘b, the elementwise product of complex vectors of
// equal, even length: first half real, second half imaginary parts.
func MulComplex(dst, a, b []float32) {
	sameEven("MulComplex", len(dst), len(a), len(b))
	if h := len(dst) / 2; fast && h >= lanes {
		fastMulComplex(&dst[0], &dst[h], &a[0], &a[h], &b[0], &b[h], h)
		return
	}
	plainMulComplex(dst, a, b)
}

// AddMulComplex computes dst += a∘b, laid out as in [MulComplex].
func AddMulComplex(dst, a, b []float32) {
	sameEven("AddMulComplex", len(dst), len(a), len(b))
	if h := len(dst) / 2; fast && h >= lanes {
		fastAddMulComplex(&dst[0], &dst[h], &a[0], &a[h], &b[0], &b[h], h)
		return
	}
	plainAddMulComplex(dst, a, b)
}

// MulConj computes dst = conj(a)∘b, laid out as in [MulComplex].
func MulConj(dst, a, b []float32) {
	sameEven("MulConj", len(dst), len(a), len(b))
	if h := len(dst) / 2; fast && h >= lanes {
		fastMulConj(&dst[0], &dst[h], &a[0], &a[h], &b[0], &b[h], h)
		return
	}
	plainMulConj(dst, a, b)
}

// AddMulConj computes dst += conj(a)∘b, laid out as in [MulComplex].
func AddMulConj(dst, a, b []float32) {
	sameEven("AddMulConj", len(dst), len(a), len(b))
	if h := len(dst) / 2; fast && h >= lanes {
		fastAddMulConj(&dst[0], &dst[h], &a[0], &a[h], &b[0], &b[h], h)
		return
	}
	plainAddMulConj(dst, a, b)
}

// AddMulModulus computes dst += by·|x|∘x, laid out as in [MulComplex]: each number
// counts times its modulus. It is the gradient of by/3·Σ|x|³.
func AddMulModulus(dst, x []float32, by float32) {
	sameEven("AddMulModulus", len(dst), len(x), len(x))
	if h := len(dst) / 2; fast && h >= lanes {
		fastAddMulModulus(&dst[0], &dst[h], &x[0], &x[h], h, by)
		return
	}
	plainAddMulModulus(dst, x, by)
}
