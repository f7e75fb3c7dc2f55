package vec

// Add computes dst[i] += x[i].
func Add(dst, x []float32) {
	same("Add", len(dst), len(x))
	if fast && len(dst) >= lanes {
		fastAdd(&dst[0], &x[0], len(dst))
		return
	}
	plainAdd(dst, x)
}

// Sub computes dst[i] -= x[i].
func Sub(dst, x []float32) {
	same("Sub", len(dst), len(x))
	if fast && len(dst) >= lanes {
		fastSub(&dst[0], &x[0], len(dst))
		return
	}
	plainSub(dst, x)
}

// AXPY computes dst[i] += a·x[i].
func AXPY(dst []float32, a float32, x []float32) {
	same("AXPY", len(dst), len(x))
	if fast && len(dst) >= lanes {
		fastAXPY(&dst[0], a, &x[0], len(dst))
		return
	}
	plainAXPY(dst, a, x)
}

// Scale computes dst[i] *= a.
func Scale(dst []float32, a float32) {
	if fast && len(dst) >= lanes {
		fastScale(&dst[0], a, len(dst))
		return
	}
	plainScale(dst, a)
}

// Mul computes dst[i] = a[i]·b[i].
func Mul(dst, a, b []float32) {
	same3("Mul", len(dst), len(a), len(b))
	if fast && len(dst) >= lanes {
		fastMul(&dst[0], &a[0], &b[0], len(dst))
		return
	}
	plainMul(dst, a, b)
}

// AddMul computes dst[i] += a[i]·b[i].
func AddMul(dst, a, b []float32) {
	same3("AddMul", len(dst), len(a), len(b))
	if fast && len(dst) >= lanes {
		fastAddMul(&dst[0], &a[0], &b[0], len(dst))
		return
	}
	plainAddMul(dst, a, b)
}

// OddsLanes is how many sums [TopicOdds] makes beside each other.
const OddsLanes = 8

// TopicOdds computes how much each topic is drawn by collapsed Gibbs sampling (package train/lda), weight[i]·(max(word[i], 0) + beta), and adds
// it up: dst[i] is the sum of that of topics i, i-8, i-16, …, so that no sum is across a register. The bits are the same on every processor.
func TopicOdds(dst, weight, word []float32, beta float32) {
	same3("TopicOdds", len(dst), len(weight), len(word))
	n := 0
	if fast && len(dst) >= OddsLanes {
		n = len(dst) &^ (OddsLanes - 1)
		fastTopicOdds(&dst[0], &weight[0], &word[0], n, beta)
	}
	if n < len(dst) {
		plainTopicOdds(dst, weight, word, beta, n)
	}
}

// PairStep sets p[i] to keep·p[i] + by·q[i], and q[i] to keep·q[i] + by·p[i], both from the
// former values: a step of SGD for a cell of a matrix (package train/mf).
func PairStep(p, q []float32, keep, by float32) {
	same("PairStep", len(p), len(q))
	if fast && len(p) >= lanes {
		fastPairStep(&p[0], &q[0], len(p), keep, by)
		return
	}
	plainPairStep(p, q, keep, by)
}
