package lda

import (
	"math/rand/v2"
)

// A sampler samples topics for the words of one document after the other by collapsed
// Gibbs sampling, and keeps the counts of topics and of the document up to date. It
// belongs to one goroutine.
type sampler struct {
	alpha, beta float32
	vbeta       float32   // of all words
	topic       []float32 // n_k
	inverse     []float32 // 1 / (n_k + V·Beta)
	doc         []float32 // n_dk
	length      float32   // Σ n_dk
	sums        []float32 // of the weights, up to and with each topic
}

func newSampler(t *Task) sampler {
	k := t.cfg.Topics
	return sampler{
		alpha: t.cfg.Alpha, beta: t.cfg.Beta, vbeta: float32(t.words) * t.cfg.Beta,
		topic: make([]float32, k), inverse: make([]float32, k), doc: make([]float32, k), sums: make([]float32, k),
	}
}

// setTotals sets the counts of the topics to the sums of their rows.
func (s *sampler) setTotals(rows []float32) {
	k := len(s.topic)
	clear(s.topic)
	for len(rows) >= k {
		for i, n := range rows[:k] {
			s.topic[i] += n
		}
		rows = rows[k:]
	}
	for i := range s.topic {
		s.invert(i)
	}
}

// invert brings topic i's inverse up to date. Counts of several rows that are
// not of the same moment may add up to less than nothing.
func (s *sampler) invert(i int) { s.inverse[i] = 1 / (max(s.topic[i], 0) + s.vbeta) }

// beginDocument begins a document whose words have these topics.
func (s *sampler) beginDocument(topics []uint16) {
	clear(s.doc)
	s.length = 0
	for _, z := range topics {
		if z != none {
			s.doc[z]++
			s.length++
		}
	}
}

// count adds by to the counts of a word of the document in topic z.
func (s *sampler) count(counts []float32, z int, by float32) {
	counts[z] += by
	s.doc[z] += by
	s.length += by
	s.topic[z] += by
	s.invert(z)
}

// sample draws a topic for a word with these counts, and returns the probability of
// the word in this document.
func (s *sampler) sample(counts []float32, r *rand.Rand) (z int, p float64) {
	sum := float32(0)
	sums := s.sums[:len(counts)]
	doc, inverse := s.doc[:len(counts)], s.inverse[:len(counts)]
	for k, n := range counts {
		sum += (doc[k] + s.alpha) * (max(n, 0) + s.beta) * inverse[k]
		sums[k] = sum
	}
	p = float64(sum) / float64(s.length+float32(len(counts))*s.alpha)
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
