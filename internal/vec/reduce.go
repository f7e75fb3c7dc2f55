package vec

// Dot returns the sum of a[i]·b[i], 0 for empty vectors.
func Dot(a, b []float32) float32 {
	same("Dot", len(a), len(b))
	if fast && len(a) >= lanes {
		return fastDot(&a[0], &b[0], len(a))
	}
	return plainDot(a, b)
}

// SquaredNorm returns the sum of x[i]², 0 for an empty vector.
func SquaredNorm(x []float32) float32 {
	return Dot(x, x)
}

// Max returns the largest element, -Inf for an empty vector. Where one is a NaN, it may
// return anything; of zeros of both signs, either.
func Max(x []float32) float32 {
	if fast && len(x) >= lanes {
		return fastMax(&x[0], len(x))
	}
	return plainMax(x)
}
