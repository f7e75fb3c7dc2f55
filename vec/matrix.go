package vec

// The matrices of this file are contiguous and row-major: element (i, j) of an
// m×n matrix x is x[i·n+j].

// MulABt computes dst[m×n] = A[m×k]·B[n×k]ᵀ: all dot products of m vectors
// with n vectors of k floats.
func MulABt(dst, a, b []float32, m, n, k int) {
	shape("MulABt", "dst", len(dst), m, n)
	shape("MulABt", "a", len(a), m, k)
	shape("MulABt", "b", len(b), n, k)
	plainMulABt(dst, a, b, m, n, k)
}

// AddMulAB computes dst[m×k] += S[m×n]·B[n×k]: the gradient of [MulABt] towards
// A, given S, the gradient towards its result.
func AddMulAB(dst, s, b []float32, m, n, k int) {
	shape("AddMulAB", "dst", len(dst), m, k)
	shape("AddMulAB", "s", len(s), m, n)
	shape("AddMulAB", "b", len(b), n, k)
	plainAddMulAB(dst, s, b, m, n, k)
}

// AddMulAtB computes dst[n×k] += S[m×n]ᵀ·A[m×k]: the gradient of [MulABt]
// towards B, given S, the gradient towards its result.
func AddMulAtB(dst, s, a []float32, m, n, k int) {
	shape("AddMulAtB", "dst", len(dst), n, k)
	shape("AddMulAtB", "s", len(s), m, n)
	shape("AddMulAtB", "a", len(a), m, k)
	plainAddMulAtB(dst, s, a, m, n, k)
}
