package sampling

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/godwit-ps/godwit"
)

// drawn records what one sample without replacement has drawn.
type drawn struct {
	want     int // keys of the whole sample
	pooled   int // how many more draws may come from a pool
	seen     keySet
	rejected uint64       // draws of keys that the sample had already
	rest     []godwit.Key // after drawRest: the keys to take from then on, in order
	taken    int          // how many of rest were taken
}

func (d *drawn) reset(want int) {
	d.want, d.pooled = want, want
	d.seen.reset(want)
	d.rejected = 0
	d.rest, d.taken = d.rest[:0], 0
}

// restDrawn reports whether drawRest has drawn the rest of the sample. A sample with
// replacement has no drawn, and it never has.
func (d *drawn) restDrawn() bool { return d != nil && d.taken < len(d.rest) }

// drawnOf returns the record of b, nil with replacement. It is made at the first pull,
// so that samples that were not pulled yet take no memory for it.
func (s *Sampler) drawnOf(b *sample) *drawn {
	if !s.spec.Distinct || b.drawn != nil {
		return b.drawn
	}
	if n := len(s.spare); n > 0 {
		b.drawn, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		b.drawn = &drawn{}
	}
	b.drawn.reset(b.left)
	return b.drawn
}

// rejections bounds the draws of one sample that hit a key it has already, where drawRest
// sorts so many rows. They cost about as much as that, so that a sample costs about twice as much at most.
func rejections(rows uint64) uint64 { return 4*rows + 1<<10 }

// sorted returns as how many rows those of a distribution count there. One of probability 0 is only looked at.
func sorted(d Distribution) uint64 {
	support := min(d.Support(), d.Rows())
	return support + (d.Rows()-support)/64
}

// candidate returns a key that the sample may take next: a draw from the
// target, without replacement conditioned on the keys not taken yet. The
// conditioning is by rejection, until that becomes slower than drawRest.
func (s *Sampler) candidate(d *drawn) (godwit.Key, error) {
	for {
		if d.restDrawn() {
			return d.rest[d.taken], nil
		}
		k, err := s.source(d)
		if err != nil || !s.spec.Distinct || !d.seen.has(k) {
			return k, err
		}
		d.rejected++
		if d.rejected > s.maxRejected {
			if err := s.drawRest(d); err != nil {
				return 0, err
			}
		}
	}
}

// take records that the candidate k is part of the sample.
func (s *Sampler) take(d *drawn, k godwit.Key) {
	switch {
	case !s.spec.Distinct:
	case d.restDrawn():
		d.taken++
	default:
		d.seen.add(k)
	}
}

// timed is a row and the time at which it is drawn.
type timed struct {
	key godwit.Key
	at  float64
}

// drawRest draws the rest of a sample, in order, in one pass over the rows: if each row
// waits for an exponentially distributed time with its
// probability as rate, the rows arrive in the order of draws without
// replacement (Efraimidis and Spirakis 2006, with logarithms of their keys).
func (s *Sampler) drawRest(d *drawn) error {
	s.order = s.order[:0]
	for row := range s.rows {
		k := s.base + godwit.Key(row)
		p := s.spec.Dist.Prob(row)
		if p > 0 && !d.seen.has(k) {
			s.order = append(s.order, timed{k, s.rand.ExpFloat64() / p})
		}
	}
	left := d.want - d.seen.len
	if len(s.order) < left {
		return fmt.Errorf("sampler %q: distribution %s promises a support of %d rows, only %d have a positive probability",
			s.spec.Name, s.spec.Dist.Name(), s.spec.Dist.Support(), d.seen.len+len(s.order))
	}
	slices.SortFunc(s.order, func(a, b timed) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.key, b.key))
	})
	for _, t := range s.order[:left] {
		d.rest = append(d.rest, t.key)
	}
	return nil
}

// A keySet is a set of keys with open addressing. It is reset and reused without
// allocating, which a Go map would not be.
type keySet struct {
	slots []uint64 // key + 1; 0 is empty. Invariant: at least half are empty.
	shift uint     // 64 - log2(len(slots))
	len   int
}

// reset empties the set and makes room for n keys.
func (t *keySet) reset(n int) {
	log := max(3, bits.Len(uint(2*n-1)))
	size := 1 << log
	t.slots = slices.Grow(t.slots[:0], size)[:size]
	clear(t.slots)
	t.shift = uint(64 - log)
	t.len = 0
}

// find returns the slot that holds k, or the empty one where k would go.
func (t *keySet) find(k godwit.Key) *uint64 {
	// Multiplicative hashing spreads runs of keys (Knuth, vol. 3, 6.4).
	i := uint64(k) * 0x9e3779b97f4a7c15 >> t.shift
	for t.slots[i] != 0 && t.slots[i] != uint64(k)+1 {
		i = (i + 1) & uint64(len(t.slots)-1)
	}
	return &t.slots[i]
}

func (t *keySet) has(k godwit.Key) bool { return *t.find(k) != 0 }

// add adds a key that the set does not have.
func (t *keySet) add(k godwit.Key) {
	*t.find(k) = uint64(k) + 1
	t.len++
}
