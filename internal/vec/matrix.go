package vec

// The matrices of this file are contiguous and row-major: element (i, j) of an
// m×n matrix x is x[i·n+j].

// MulABt computes dst[m×n] = A[m×k]·B[n×k]ᵀ: all dot products of m vectors
// with n vectors of k floats.
func MulABt(dst, a, b []float32, m, n, k int) {
	shape("MulABt", "dst", len(dst), m, n)
	shape("MulABt", "a", len(a), m, k)
	shape("MulABt", "b", len(b), n, k)
	if fast {
		gemm(dst, operand{a, k, 1}, operand{b, 1, k}, m, n, k, false)
		return
	}
	plainMulABt(dst, a, b, m, n, k)
}

// MulAB computes dst[m×k] = S[m×n]·B[n×k], see [AddMulAB].
func MulAB(dst, s, b []float32, m, n, k int) {
	shape("MulAB", "dst", len(dst), m, k)
	shape("MulAB", "s", len(s), m, n)
	shape("MulAB", "b", len(b), n, k)
	if fast {
		gemm(dst, operand{s, n, 1}, operand{b, k, 1}, m, k, n, false)
		return
	}
	plainMulAB(dst, s, b, m, n, k)
}

// AddMulAB computes dst[m×k] += S[m×n]·B[n×k]: the gradient of [MulABt] towards
// A, given S, the gradient towards its result.
func AddMulAB(dst, s, b []float32, m, n, k int) {
	shape("AddMulAB", "dst", len(dst), m, k)
	shape("AddMulAB", "s", len(s), m, n)
	shape("AddMulAB", "b", len(b), n, k)
	if fast {
		gemm(dst, operand{s, n, 1}, operand{b, k, 1}, m, k, n, true)
		return
	}
	plainAddMulAB(dst, s, b, m, n, k)
}

// AddMulAtB computes dst[n×k] += S[m×n]ᵀ·A[m×k]: the gradient of [MulABt]
// towards B, given S, the gradient towards its result.
func AddMulAtB(dst, s, a []float32, m, n, k int) {
	shape("AddMulAtB", "dst", len(dst), n, k)
	shape("AddMulAtB", "s", len(s), m, n)
	shape("AddMulAtB", "a", len(a), m, k)
	if fast {
		gemm(dst, operand{s, 1, n}, operand{a, k, 1}, n, k, m, true)
		return
	}
	plainAddMulAtB(dst, s, a, m, n, k)
}

// An operand is a factor of a product: element (i, j) is x[i·row+j·col].
type operand struct {
	x        []float32
	row, col int
}
