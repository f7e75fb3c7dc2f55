package triples

import (
	"math"
	"math/rand/v2"
)

// A complEx is the plain model of Trouillon et al. (ICML 2016, equation 9):
// score(s,r,o) = Re(Σ s_i r_i conj(o_i)). It tests generated graphs,
// not to be fast: one goroutine, AdaGrad, cross entropy against uniformly drawn
// negatives. A row holds dim real parts, then dim imaginary parts.
type complEx struct {
	dim              int
	ent, rel         []float32
	entAcc, relAcc   []float32
	query, grad, sum []float32
	rand             *rand.Rand
}

func newComplEx(g *Graph, dim int, seed uint64) *complEx {
	r := rand.New(rand.NewPCG(seed, 1))
	draw := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64()) * 0.1
		}
		return x
	}
	w := 2 * dim
	return &complEx{
		dim: dim, ent: draw(len(g.Entities) * w), rel: draw(len(g.Relations) * w),
		entAcc: make([]float32, len(g.Entities)*w), relAcc: make([]float32, len(g.Relations)*w),
		query: make([]float32, w), grad: make([]float32, w), sum: make([]float32, w), rand: r,
	}
}

func row(x []float32, i uint32, dim int) []float32 { return x[int(i)*2*dim:][:2*dim] }

// compose sets q so that the score of a triple is the dot product of q with the
// row of the missing entity: q = s∘r for the tail, conj(r)∘o for the head.
func (m *complEx) compose(q []float32, known, r uint32, tail bool) {
	e, w, d := row(m.ent, known, m.dim), row(m.rel, r, m.dim), m.dim
	sign := float32(1)
	if !tail {
		sign = -1
	}
	for i := range d {
		b := sign * w[d+i]
		q[i] = e[i]*w[i] - e[d+i]*b
		q[d+i] = e[i]*b + e[d+i]*w[i]
	}
}

func dot(a, b []float32) float32 {
	var s float32
	b = b[:len(a)]
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func (m *complEx) step(x, acc, grad []float32) {
	const lr = 0.1
	for i, g := range grad {
		acc[i] += g * g
		x[i] -= lr * g / float32(math.Sqrt(float64(acc[i]))+1e-8)
	}
}

// learn takes one step on the query (known, r, ?) or (?, r, known).
func (m *complEx) learn(known, r, answer uint32, tail bool, negatives []uint32) {
	d := m.dim
	m.compose(m.query, known, r, tail)
	p := make([]float64, 1+len(negatives))
	cand := append([]uint32{answer}, negatives...)
	var norm float64
	for i, c := range cand {
		p[i] = math.Exp(float64(dot(m.query, row(m.ent, c, d))))
		norm += p[i]
	}
	clear(m.sum)
	for i, c := range cand {
		g := float32(p[i] / norm)
		if i == 0 {
			g--
		}
		x := row(m.ent, c, d)
		for k := range x {
			m.sum[k] += g * x[k]
			m.grad[k] = g * m.query[k]
		}
		m.step(x, row(m.entAcc, c, d), m.grad)
	}
	// Back through compose to the known entity and the relation.
	e, w := row(m.ent, known, d), row(m.rel, r, d)
	sign := float32(1)
	if !tail {
		sign = -1
	}
	gr := make([]float32, 2*d)
	for i := range d {
		a, b := m.sum[i], m.sum[d+i]
		m.grad[i] = a*w[i] + b*sign*w[d+i]
		m.grad[d+i] = -a*sign*w[d+i] + b*w[i]
		gr[i] = a*e[i] + b*e[d+i]
		gr[d+i] = sign * (-a*e[d+i] + b*e[i])
	}
	m.step(e, row(m.entAcc, known, d), m.grad)
	m.step(w, row(m.relAcc, r, d), gr)
}

func (m *complEx) epoch(g *Graph, negatives int) {
	neg := make([]uint32, negatives)
	for _, i := range m.rand.Perm(len(g.Train)) {
		t := g.Train[i]
		for k := range neg {
			neg[k] = m.rand.Uint32N(uint32(len(g.Entities)))
		}
		m.learn(t.S, t.R, t.O, true, neg)
		m.learn(t.O, t.R, t.S, false, neg)
	}
}

func (m *complEx) scores(dst []float32, known, r uint32, tail bool) {
	m.compose(m.query, known, r, tail)
	for e := range dst {
		dst[e] = dot(m.query, row(m.ent, uint32(e), m.dim))
	}
}

// popularity scores an entity by how often it stands at the place in train:
// in any triple, or (byRelation) in the asked relation and column.
func popularity(g *Graph, byRelation bool) scorer {
	head, tail := make([][]float32, len(g.Relations)), make([][]float32, len(g.Relations))
	all := make([]float32, len(g.Entities))
	for r := range head {
		head[r], tail[r] = make([]float32, len(g.Entities)), make([]float32, len(g.Entities))
	}
	for _, t := range g.Train {
		all[t.S]++
		all[t.O]++
		head[t.R][t.S]++
		tail[t.R][t.O]++
	}
	return func(dst []float32, _, r uint32, isTail bool) {
		switch {
		case !byRelation:
			copy(dst, all)
		case isTail:
			copy(dst, tail[r])
		default:
			copy(dst, head[r])
		}
	}
}

// A scorer fills dst with the scores of all entities as the answer of a query.
type scorer func(dst []float32, known, r uint32, tail bool)

// mrr is the filtered mean reciprocal rank over both sides of the queries; the
// rank among equal scores is their middle.
func mrr(g *Graph, queries []Triple, score scorer) float64 {
	f, dst := NewFilter(g), make([]float32, len(g.Entities))
	var sum float64
	for _, t := range queries {
		score(dst, t.S, t.R, true)
		sum += 1 / rank(dst, t.O, f.Objects(t.S, t.R))
		score(dst, t.O, t.R, false)
		sum += 1 / rank(dst, t.S, f.Subjects(t.R, t.O))
	}
	return sum / float64(2*len(queries))
}

func rank(score []float32, answer uint32, known []uint32) float64 {
	above, equal := 0, 0
	for _, x := range score {
		switch {
		case x > score[answer]:
			above++
		case x == score[answer]:
			equal++
		}
	}
	for _, e := range known {
		switch {
		case score[e] > score[answer]:
			above--
		case score[e] == score[answer]:
			equal--
		}
	}
	if equal < 0 || above < 0 {
		panic("the answer is not among the known facts")
	}
	return 1 + float64(above) + float64(equal)/2
}
