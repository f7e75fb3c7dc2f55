// Package histogram counts values by their order of magnitude.
package histogram

import (
	"math/bits"
	"sync/atomic"
)

// Buckets is how many buckets a histogram has. Bucket i counts the values below 2^i that
// no bucket before it does: bucket 0 counts zeros, bucket 1 ones, bucket 2 twos and threes. The
// last bucket counts all values that are larger.
const Buckets = 26

// Bucket returns the bucket of a value.
func Bucket(v uint64) int { return min(bits.Len64(v), Buckets-1) }

// Counts are values by bucket, and their sum.
type Counts struct {
	Of  [Buckets]uint64
	Sum uint64
}

// Observe counts a value.
func (c *Counts) Observe(v uint64) {
	c.Of[Bucket(v)]++
	c.Sum += v
}

// Add adds what another histogram counted.
func (c *Counts) Add(o *Counts) {
	for i, n := range o.Of {
		c.Of[i] += n
	}
	c.Sum += o.Sum
}

// A Shared histogram is counted in by any number of goroutines.
type Shared struct {
	of  [Buckets]atomic.Uint64
	sum atomic.Uint64
}

// Observe counts a value.
func (s *Shared) Observe(v uint64) {
	s.of[Bucket(v)].Add(1)
	s.sum.Add(v)
}

// Counts returns what was counted so far.
func (s *Shared) Counts() (c Counts) {
	for i := range s.of {
		c.Of[i] = s.of[i].Load()
	}
	c.Sum = s.sum.Load()
	return c
}
