package lda

import (
	"math/rand/v2"

	"github.com/godwit-ps/godwit/internal/vec"
)

// A sampler samples topics for the words of one document after the other by collapsed
// Gibbs sampling, and keeps the counts of topics and of the document up to date. It
// belongs to one goroutine.
//
// The odds of a word's topic are those by all counts without this word. Most words keep their topic, so the counts stay as
// they are while a topic is drawn; only the odds of the former topic are computed beside.
type sampler struct {
	alpha, beta float32
	vbeta       float32   // of all words
	topic       []float32 // n_k
	doc         []float32 // n_dk
	inverse     []float32 // 1 / (n_k + V·Beta)
	weight      []float32 // (n_dk + Alpha) / (n_k + V·Beta)
	sums        []float32 // of the odds, see [vec.TopicOdds]
	length      float32   // Σ n_dk
	random      uint64    // bits that are drawn and not used yet
	left        int       // so many draws
}

// lanes is how many topics' odds are added up beside each other. Vectors of the sampler are a multiple as long, with weights of 0 at the end.
const lanes = vec.OddsLanes

// padded is the length of a word's counts as the sampler takes them. What is behind those of the topics counts for nothing.
func padded(topics int) int { return (topics + lanes - 1) &^ (lanes - 1) }

func newSampler(t *Task) sampler {
	k, n := t.cfg.Topics, padded(t.cfg.Topics)
	return sampler{
		alpha: t.cfg.Alpha, beta: t.cfg.Beta, vbeta: float32(t.words) * t.cfg.Beta,
		topic: make([]float32, k), doc: make([]float32, k), inverse: make([]float32, k), weight: make([]float32, n), sums: make([]float32, n),
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
	for z, n := range s.topic {
		s.inverse[z] = s.inverted(n)
	}
}

// inverted is what the odds of a topic of n words are multiplied by. Counts of several rows that are
// not of the same moment may add up to less than nothing.
func (s *sampler) inverted(n float32) float32 { return 1 / (max(n, 0) + s.vbeta) }

// beginDocument begins a document whose words have these topics.
func (s *sampler) beginDocument(topics []uint16) {
	clear(s.doc)
	n := 0
	for _, z := range topics {
		if z != none {
			s.doc[z]++
			n++
		}
	}
	s.length, s.left = float32(n), 0
	for z, n := range s.doc {
		s.weight[z] = (n + s.alpha) * s.inverse[z]
	}
}

// count adds by to the counts of a word of the document in topic z.
func (s *sampler) count(counts []float32, z int, by float32) {
	counts[z] += by
	s.topic[z] += by
	s.inverse[z] = s.inverted(s.topic[z])
	s.countInDocument(z, by)
}

// countInDocument adds by to the counts of the document alone.
func (s *sampler) countInDocument(z int, by float32) {
	s.doc[z] += by
	s.weight[z] = (s.doc[z] + s.alpha) * s.inverse[z]
	s.length += by
}

// sample draws a topic for a word of which these are the counts, and returns the probability of
// the word in this document.
func (s *sampler) sample(counts []float32, r *rand.PCG) (z int, p float32) {
	vec.TopicOdds(s.sums, s.weight, counts[:len(s.weight)], s.beta)
	all := s.all()
	return s.find(s.uniform(r)*all, len(s.sums), 0), s.probability(all)
}

// resample is sample for a word that has topic was. The counts are those with the word.
func (s *sampler) resample(counts []float32, was int, r *rand.PCG) (z int, p float32) {
	counts = counts[:len(s.weight)]
	vec.TopicOdds(s.sums, s.weight, counts, s.beta)
	n, u := counts[was], s.uniform(r)
	fewer := (s.doc[was] - 1 + s.alpha) * s.inverted(s.topic[was]-1)
	odds, kept := s.weight[was]*(max(n, 0)+s.beta), fewer*(max(n-1, 0)+s.beta)
	all := s.all()
	others := all - odds
	if others < all*(1./64) && kept < odds*(1./64) {
		others = s.without(counts, was) // of which the difference is too little to be exact
		odds = 0
	}
	rest := kept + others
	s.length--
	p = s.probability(rest)
	s.length++
	// The former topic comes first: most words keep theirs.
	x := u * rest
	if x < kept {
		return was, p
	}
	return s.find(x-kept, was, odds), p
}

// without makes the sums anew without a topic, and returns that of all.
func (s *sampler) without(counts []float32, z int) float32 {
	weight := s.weight[z]
	s.weight[z] = 0
	vec.TopicOdds(s.sums, s.weight, counts, s.beta)
	s.weight[z] = weight
	return s.all()
}

// probability is that of a word whose odds are so much in all.
func (s *sampler) probability(odds float32) float32 {
	return odds / (s.length + float32(len(s.topic))*s.alpha)
}

// uniform draws a number from 0 to below 1.
func (s *sampler) uniform(r *rand.PCG) float32 {
	if s.left == 0 {
		s.random, s.left = r.Uint64(), 2
	}
	x := float32(uint32(s.random)>>8) * 0x1p-24
	s.random >>= 32
	s.left--
	return x
}

// lasts are the sums of all topics of each lane.
func (s *sampler) lasts() *[lanes]float32 { return (*[lanes]float32)(s.sums[len(s.sums)-lanes:]) }

// all is the sum of the odds of all topics.
func (s *sampler) all() float32 {
	x := s.lasts()
	return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]))
}

// find returns the topic at which the odds add up to more than x, without those of one topic, which are so much. The topics are in the order of their lanes.
// The lane is found first, then the topic within, without branches that a processor could not foresee.
func (s *sampler) find(x float32, without int, odds float32) int {
	of := s.lasts()
	var ends [lanes]float32 // of the lanes before each
	x1 := of[0]
	x2 := of[0] + of[1]
	x23 := of[2] + of[3]
	x4 := x2 + x23
	x3 := x2 + of[2]
	x5 := x4 + of[4]
	x6 := x4 + (of[4] + of[5])
	x7 := x6 + of[6]
	ends[1], ends[2], ends[3], ends[4], ends[5], ends[6], ends[7] = x1, x2, x3, x4, x5, x6, x7
	if odds > 0 {
		begin := ends[without%lanes]
		if without >= lanes {
			begin += s.sums[without-lanes]
		}
		x += odds * float32(one(x >= begin))
	}
	lane := one(x >= x1) + one(x >= x2) + one(x >= x3) + one(x >= x4) + one(x >= x5) + one(x >= x6) + one(x >= x7)
	x -= ends[lane%lanes]
	z := lane + lanes*above(s.sums[lane%lanes:], x)
	if k := len(s.topic); z >= k { // rounding
		z = max(z-lanes, min(lane, k-1))
	}
	return z
}

// above returns how many of every eighth of these, but the last, are at most x. They ascend.
func above(sums []float32, x float32) (n int) {
	lo, hi := 0, (len(sums)-1)/lanes
	for hi-lo > 8 {
		if mid := (lo + hi) / 2; sums[mid*lanes] > x {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	n = lo
	for i := lo * lanes; i < hi*lanes; i += lanes {
		n += one(sums[i] <= x)
	}
	return n
}

// one is 1 where b is true, else 0.
func one(b bool) (n int) {
	if b {
		n = 1
	}
	return n
}
