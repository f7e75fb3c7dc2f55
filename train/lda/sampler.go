package lda

import (
	"math/rand/v2"

	"github.com/godwit-ps/godwit/internal/vec"
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
	smoothed    []float32 // n_dk + Alpha
	length      float32   // Σ n_dk
	odds        []float32 // of the topics
	sums        []float32 // of the odds, up to and with each block of topics
}

// block is how many topics' odds are summed before the draw looks at them one by one.
const block = 8

func newSampler(t *Task) sampler {
	k := t.cfg.Topics
	return sampler{
		alpha: t.cfg.Alpha, beta: t.cfg.Beta, vbeta: float32(t.words) * t.cfg.Beta,
		topic: make([]float32, k), inverse: make([]float32, k), doc: make([]float32, k), smoothed: make([]float32, k),
		odds: make([]float32, k), sums: make([]float32, (k+block-1)/block),
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
	for z, n := range s.doc {
		s.smoothed[z] = n + s.alpha
	}
}

// count adds by to the counts of a word of the document in topic z.
func (s *sampler) count(counts []float32, z int, by float32) {
	counts[z] += by
	s.countInDocument(z, by)
	s.topic[z] += by
	s.invert(z)
}

// countInDocument adds by to the counts of the document alone.
func (s *sampler) countInDocument(z int, by float32) {
	s.doc[z] += by
	s.smoothed[z] = s.doc[z] + s.alpha
	s.length += by
}

// sample draws a topic for a word with these counts, and returns the probability of
// the word in this document.
func (s *sampler) sample(counts []float32, r *rand.Rand) (z int, p float64) {
	vec.TopicOdds(s.odds, s.smoothed, counts, s.inverse, s.beta)
	sum := s.addUp()
	p = float64(sum) / float64(s.length+float32(len(counts))*s.alpha)
	x := r.Float32() * sum
	b := find(s.sums, x)
	from := b * block
	if b > 0 {
		x -= s.sums[b-1]
	}
	odds := s.odds[from:min(from+block, len(s.odds))]
	for z = range odds {
		if x -= odds[z]; x < 0 {
			break
		}
	}
	return from + z, p
}

// addUp fills in the sums, and returns the last.
func (s *sampler) addUp() (sum float32) {
	odds := s.odds
	for b := range s.sums {
		if len(odds) < block {
			for _, o := range odds {
				sum += o
			}
		} else {
			o := odds[:block]
			sum += ((o[0] + o[1]) + (o[2] + o[3])) + ((o[4] + o[5]) + (o[6] + o[7]))
			odds = odds[block:]
		}
		s.sums[b] = sum
	}
	return sum
}

// find returns the first place whose sum is above x, or the last one.
func find(sums []float32, x float32) int {
	lo, hi := 0, len(sums)-1
	for hi-lo > 8 {
		if mid := (lo + hi) / 2; sums[mid] > x {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	for lo < hi && sums[lo] <= x {
		lo++
	}
	return lo
}
