package schedule

import "math/rand/v2"

// Items are n items that may be trained in any order, and how an epoch of them is divided:
// into groups, which have the same items in each epoch, and a group into chunks. The items
// of a group are shuffled in each epoch, so that batches are of new items. A group is
// spread evenly over the items. Groups are small, so that a node can keep its own, and what
// their items need.
//
// Items belong to one goroutine.
type Items struct {
	n, batch              int
	chunks, steps, groups int
	perChunk              int // steps of a chunk, but the last
	seed, stride          uint64

	epoch, group int     // whose order this is
	order        []int32 // items
	src          rand.PCG
	rand         *rand.Rand
}

// A group is to have so many steps, unless that made more groups than this.
const (
	groupSteps = 16
	mostGroups = 64
)

// NewItems divides items 0 … n-1 into steps of batch items; n is at most 2³¹-1.
func NewItems(n, batch int, seed uint64) *Items {
	steps := (n + batch - 1) / batch
	s := &Items{n: n, batch: batch, steps: steps, groups: min(max(1, steps/groupSteps), mostGroups), seed: seed, stride: stride(uint64(n)), epoch: -1}
	s.rand = rand.New(&s.src)
	s.chunks, s.perChunk = cut(steps, mostItemChunks)
	return s
}

// Chunks returns the number of chunks of an epoch.
func (s *Items) Chunks() int { return s.chunks }

// Steps returns the number of steps of a chunk.
func (s *Items) Steps(chunk int) int { return stepsOf(s.steps, chunk, s.perChunk) }

// Batch returns the items of a step of a chunk. The result is valid until the next call.
func (s *Items) Batch(epoch, chunk, step int) []int32 {
	g := ((chunk+1)*s.groups - 1) / s.chunks
	per := s.perChunk
	first, end := Range(s.chunks, g, s.groups)
	begin := first * per * s.batch
	if epoch != s.epoch || g != s.group {
		s.shuffle(epoch, g, begin, min(end*per*s.batch, s.n))
	}
	from := (chunk*per+step)*s.batch - begin
	return s.order[from:min(from+s.batch, len(s.order))]
}

// shuffle orders a group, whose items are at the places from … to-1 of all, for an epoch.
func (s *Items) shuffle(epoch, group, from, to int) {
	s.epoch, s.group = epoch, group
	s.order = s.order[:0]
	for p := from; p < to; p++ {
		s.order = append(s.order, int32(uint64(p)*s.stride%uint64(s.n)))
	}
	s.src.Seed(s.seed, uint64(epoch)<<32|uint64(group))
	s.rand.Shuffle(len(s.order), func(i, j int) { s.order[i], s.order[j] = s.order[j], s.order[i] })
}

// stride returns a number near the golden section of n that has no factor in common with
// it: its multiples modulo n are all numbers below n, and any run of them is spread evenly.
func stride(n uint64) uint64 {
	s := max(1, uint64(float64(n)*0.6180339887498949))
	for gcd(s, n) > 1 {
		s++
	}
	return s
}

func gcd(a, b uint64) uint64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
