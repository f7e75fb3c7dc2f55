package lda

import (
	"math/rand/v2"
)

// A draw draws topics for the words of one document after the other, and keeps
// the counts of topics and of the document up to date. It belongs to one
// goroutine.
type draw struct {
	alpha, beta float32
	vbeta       float32   // of all words
	topic       []float32 // n_k
	inverse     []float32 // 1 / (n_k + V·Beta)
	doc         []float32 // n_dk
	length      float32   // Σ n_dk
	sums        []float32 // of the weights, up to and with each topic
}

func newDraw(t *Task) draw {
	k := t.cfg.Topics
	return draw{
		alpha: t.cfg.Alpha, beta: t.cfg.Beta, vbeta: float32(t.words) * t.cfg.Beta,
		topic: make([]float32, k), inverse: make([]float32, k), doc: make([]float32, k), sums: make([]float32, k),
	}
}

// totals takes the rows of the topics.
func (d *draw) totals(rows []float32) {
	k := len(d.topic)
	clear(d.topic)
	for len(rows) >= k {
		for i, n := range rows[:k] {
			d.topic[i] += n
		}
		rows = rows[k:]
	}
	for i := range d.topic {
		d.invert(i)
	}
}

// invert brings topic i's inverse up to date. Counts of several rows that are
// not of the same moment may add up to less than nothing.
func (d *draw) invert(i int) { d.inverse[i] = 1 / (max(d.topic[i], 0) + d.vbeta) }

// begin begins a document whose words have these topics.
func (d *draw) begin(topics []uint16) {
	clear(d.doc)
	d.length = 0
	for _, z := range topics {
		if z != none {
			d.doc[z]++
			d.length++
		}
	}
}

// take counts a word of the document by times more in topic z.
func (d *draw) take(counts []float32, z int, by float32) {
	counts[z] += by
	d.doc[z] += by
	d.length += by
	d.topic[z] += by
	d.invert(z)
}

// next draws a topic for a word with these counts, and returns the probability
// of the word in this document.
func (d *draw) next(counts []float32, r *rand.Rand) (z int, p float64) {
	sum := float32(0)
	sums := d.sums[:len(counts)]
	doc, inverse := d.doc[:len(counts)], d.inverse[:len(counts)]
	for k, n := range counts {
		sum += (doc[k] + d.alpha) * (max(n, 0) + d.beta) * inverse[k]
		sums[k] = sum
	}
	p = float64(sum) / float64(d.length+float32(len(counts))*d.alpha)
	return find(sums, r.Float32()*sum), p
}

// find returns the first place whose sum is above x, or the last one.
func find(sums []float32, x float32) int {
	lo, hi := 0, len(sums)-1
	for lo < hi {
		if mid := (lo + hi) / 2; sums[mid] > x {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}
