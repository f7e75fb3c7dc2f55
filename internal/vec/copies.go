package vec

// Delta takes what changed in a row since sub was taken: dst[i] = val[i] -
// sub[i], then sub[i] = val[i]. It reports whether any difference is not zero
// (a NaN is not zero).
func Delta(dst, val, sub []float32) bool {
	same3("Delta", len(dst), len(val), len(sub))
	if fast && len(dst) >= lanes {
		return fastDelta(&dst[0], &val[0], &sub[0], len(dst))
	}
	return plainDelta(dst, val, sub)
}
