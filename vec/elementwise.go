package vec

// Add computes dst[i] += x[i].
func Add(dst, x []float32) {
	same("Add", len(dst), len(x))
	plainAdd(dst, x)
}

// Sub computes dst[i] -= x[i].
func Sub(dst, x []float32) {
	same("Sub", len(dst), len(x))
	plainSub(dst, x)
}

// AXPY computes dst[i] += a·x[i].
func AXPY(dst []float32, a float32, x []float32) {
	same("AXPY", len(dst), len(x))
	plainAXPY(dst, a, x)
}

// Scale computes dst[i] *= a.
func Scale(dst []float32, a float32) {
	plainScale(dst, a)
}

// Mul computes dst[i] = a[i]·b[i].
func Mul(dst, a, b []float32) {
	same3("Mul", len(dst), len(a), len(b))
	plainMul(dst, a, b)
}

// AddMul computes dst[i] += a[i]·b[i].
func AddMul(dst, a, b []float32) {
	same3("AddMul", len(dst), len(a), len(b))
	plainAddMul(dst, a, b)
}
