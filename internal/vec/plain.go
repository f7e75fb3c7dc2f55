package vec

import "math"

// This file is the specification of the fast kernels, and what runs where there
// are none. A conversion float32(…) round a product keeps the compiler from
// fusing it with the addition that follows, as it otherwise does on arm64, and
// so keeps results equal on all processors.

func plainAdd(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += x[i]
	}
}

func plainSub(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] -= x[i]
	}
}

func plainAXPY(dst []float32, a float32, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += float32(a * x[i])
	}
}

func plainScale(dst []float32, a float32) {
	for i := range dst {
		dst[i] *= a
	}
}

func plainMul(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func plainAddMul(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] += float32(a[i] * b[i])
	}
}

func plainDot(a, b []float32) float32 {
	b = b[:len(a)]
	var s float32
	for i := range a {
		s += float32(a[i] * b[i])
	}
	return s
}

func plainDelta(dst, val, sub []float32) bool {
	val, sub = val[:len(dst)], sub[:len(dst)]
	any := false
	for i, v := range val {
		d := v - sub[i]
		dst[i], sub[i] = d, v
		any = any || d != 0
	}
	return any
}

func plainAdaGrad(value, acc, grad []float32, lr, eps float32) {
	acc, grad = acc[:len(value)], grad[:len(value)]
	for i, g := range grad {
		s := acc[i] + float32(g*g)
		if s > math.MaxFloat32 {
			s = math.MaxFloat32
		}
		acc[i] = s
		value[i] -= float32(lr*g) / (sqrt(s) + eps)
	}
}

func plainMulRoot(x, acc []float32, eps float32) {
	acc = acc[:len(x)]
	for i := range x {
		x[i] *= sqrt(acc[i]) + eps
	}
}

func plainAddDivRoot(dst, acc, x []float32, eps float32) {
	acc, x = acc[:len(dst)], x[:len(dst)]
	for i := range dst {
		dst[i] += x[i] / (sqrt(acc[i]) + eps)
	}
}

func plainAdam(value, m, v, grad []float32, s *AdamStep) {
	m, v, grad = m[:len(value)], v[:len(value)], grad[:len(value)]
	b1, b2 := 1-s.B1, 1-s.B2
	for i, g := range grad {
		w := v[i]
		if w < 0 {
			w = 0
		}
		m1 := float32(s.B1*m[i]) + float32(b1*g)
		v1 := float32(s.B2*w) + float32(b2*float32(g*g))
		m[i], v[i] = m1, v1
		r := float32(s.C1*m1) / (sqrt(float32(s.C2*v1)) + s.Eps)
		if r > s.Limit {
			r = s.Limit
		}
		if r < -s.Limit {
			r = -s.Limit
		}
		value[i] -= float32(s.LR * r)
	}
}

// plainTopicOdds begins at from, a multiple of OddsLanes.
func plainTopicOdds(dst, weight, word []float32, beta float32, from int) {
	weight, word = weight[:len(dst)], word[:len(dst)]
	for i := from; i < len(dst); i++ {
		n, sum := word[i], float32(0)
		if n < 0 {
			n = 0
		}
		odds := float32(weight[i] * (n + beta))
		if i >= OddsLanes {
			sum = dst[i-OddsLanes]
		}
		dst[i] = sum + odds
	}
}

func plainPairStep(p, q []float32, keep, by float32) {
	q = q[:len(p)]
	for i, x := range p {
		y := q[i]
		p[i] = float32(keep*x) + float32(by*y)
		q[i] = float32(keep*y) + float32(by*x)
	}
}

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func plainMulComplex(dst, a, b []float32) {
	h := len(dst) / 2
	for i := range h {
		ar, ai, br, bi := a[i], a[h+i], b[i], b[h+i]
		dst[i] = float32(ar*br) - float32(ai*bi)
		dst[h+i] = float32(ar*bi) + float32(ai*br)
	}
}

func plainAddMulComplex(dst, a, b []float32) {
	h := len(dst) / 2
	for i := range h {
		ar, ai, br, bi := a[i], a[h+i], b[i], b[h+i]
		dst[i] += float32(ar*br) - float32(ai*bi)
		dst[h+i] += float32(ar*bi) + float32(ai*br)
	}
}

func plainMulConj(dst, a, b []float32) {
	h := len(dst) / 2
	for i := range h {
		ar, ai, br, bi := a[i], a[h+i], b[i], b[h+i]
		dst[i] = float32(ar*br) + float32(ai*bi)
		dst[h+i] = float32(ar*bi) - float32(ai*br)
	}
}

func plainAddMulConj(dst, a, b []float32) {
	h := len(dst) / 2
	for i := range h {
		ar, ai, br, bi := a[i], a[h+i], b[i], b[h+i]
		dst[i] += float32(ar*br) + float32(ai*bi)
		dst[h+i] += float32(ar*bi) - float32(ai*br)
	}
}

func plainAddMulModulus(dst, x []float32, by float32) {
	h := len(dst) / 2
	for i := range h {
		xr, xi := x[i], x[h+i]
		f := by * sqrt(float32(xr*xr)+float32(xi*xi))
		dst[i] += float32(f * xr)
		dst[h+i] += float32(f * xi)
	}
}

func plainMax(x []float32) float32 {
	most := float32(math.Inf(-1))
	for _, v := range x {
		if v > most {
			most = v
		}
	}
	return most
}

func plainMulABt(dst, a, b []float32, m, n, k int) {
	for i := range m {
		for j := range n {
			dst[i*n+j] = plainDot(a[i*k:(i+1)*k], b[j*k:(j+1)*k])
		}
	}
}

func plainMulAB(dst, s, b []float32, m, n, k int) {
	clear(dst)
	plainAddMulAB(dst, s, b, m, n, k)
}

func plainAddMulAB(dst, s, b []float32, m, n, k int) {
	for i := range m {
		for j := range n {
			plainAXPY(dst[i*k:(i+1)*k], s[i*n+j], b[j*k:(j+1)*k])
		}
	}
}

func plainAddMulAtB(dst, s, a []float32, m, n, k int) {
	for i := range m {
		for j := range n {
			plainAXPY(dst[j*k:(j+1)*k], s[i*n+j], a[i*k:(i+1)*k])
		}
	}
}
