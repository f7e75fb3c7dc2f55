package vec

// Refresh gives a replica the owner's newer row and keeps what the replica's
// own pushes did since sub was taken: val[i] = fresh[i] + (val[i] - sub[i]),
// then sub[i] = fresh[i]. The arguments are the replica's row, the row that it
// last agreed on with the owner, and the owner's row.
func Refresh(val, sub, fresh []float32) {
	same3("Refresh", len(val), len(sub), len(fresh))
	if fast && len(val) >= lanes {
		refreshAVX2(&val[0], &sub[0], &fresh[0], len(val))
		return
	}
	plainRefresh(val, sub, fresh)
}

// Delta takes what changed in a row since sub was taken: dst[i] = val[i] -
// sub[i], then sub[i] = val[i]. It reports whether any difference is not zero
// (a NaN is not zero).
func Delta(dst, val, sub []float32) bool {
	same3("Delta", len(dst), len(val), len(sub))
	if fast && len(dst) >= lanes {
		return deltaAVX2(&dst[0], &val[0], &sub[0], len(dst))
	}
	return plainDelta(dst, val, sub)
}
