package vec

// Exp computes dst[i] = e^x[i] with an error below 1.3 units in the last place
// (below 1.3·2⁻¹⁴⁹ where the result is subnormal). Beyond float32 the results
// are +Inf and 0; NaN gives NaN.
func Exp(dst, x []float32) {
	same("Exp", len(dst), len(x))
	switch {
	case wide && len(dst) >= wideLanes:
		wideExp(&dst[0], &x[0], len(dst))
	case fast && len(dst) >= lanes:
		fastExp(&dst[0], &x[0], len(dst))
	default:
		plainExp(dst, x)
	}
}

// ExpSum computes x[i] = e^(x[i]-less) as [Exp] does, and returns the sum of that, 0 for
// an empty vector.
func ExpSum(x []float32, less float32) float32 {
	if wide && len(x) >= wideLanes {
		return wideExpSum(&x[0], len(x), less)
	}
	if fast && len(x) >= lanes {
		return fastExpSum(&x[0], len(x), less)
	}
	return plainExpSum(x, less)
}

// Sigmoid computes dst[i] = 1/(1 + e^-x[i]) with an error below 2.5 units in
// the last place, for negative x too, where the result is tiny. NaN gives NaN.
func Sigmoid(dst, x []float32) {
	same("Sigmoid", len(dst), len(x))
	switch {
	case wide && len(dst) >= wideLanes:
		wideSigmoid(&dst[0], &x[0], len(dst))
	case fast && len(dst) >= lanes:
		fastSigmoid(&dst[0], &x[0], len(dst))
	default:
		plainSigmoid(dst, x)
	}
}
