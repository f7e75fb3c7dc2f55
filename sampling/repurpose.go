package sampling

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/named"
)

// Repurpose uses keys as samples that the worker accessed directly a short while ago,
// because these are likely to be at the node: no key moves for a sample (NuPS:
// repurposing of direct accesses).
// The worker's node tells the sampler of direct accesses ([Sampler.Accessed]).
//
// # Bias
//
// A sample is the target conditioned on the keys that the worker accessed
// lately and that the node still holds: among them, proportions are the
// target's. Where none of them is here, or a sample without replacement has
// nearly all of their probability, keys are drawn as by [Local]. Which keys are accessed is up to the
// task: a key that it never accesses itself is sampled only in the latter case,
// and negatives of a step are positives of the steps before.
type Repurpose struct {
	// Keys is the most keys that are remembered, at least; 0 means 1024. It is
	// rounded up to a power of two. A key is forgotten when it is found not to
	// be local any more, or when an access of another key takes its place.
	Keys int
}

const (
	defaultRecent = 1024
	maxRecent     = 1 << 20
)

func (r Repurpose) Name() string {
	return named.Write("repurpose", named.Param{Key: "keys", Value: float64(r.Keys)})
}
func (Repurpose) Level() Level { return BestEffort }

func (r Repurpose) check() error {
	if r.Keys < 0 || r.Keys > maxRecent {
		return fmt.Errorf("%d recent keys, want 1 … %d, or 0 for %d", r.Keys, maxRecent, defaultRecent)
	}
	return nil
}

func (Repurpose) prepare(*Sampler, Access, *sample, godwit.Clock, godwit.Clock) error { return nil }

func (Repurpose) pull(ctx context.Context, s *Sampler, a Access, b *sample, keys []godwit.Key, dst []float32) error {
	return s.search(ctx, a, b, keys, dst, func(d *drawn, dst []float32) (godwit.Key, bool, error) {
		if k, ok := s.recent.find(s, a, d, dst); ok {
			s.stats.Repurposed++
			return k, true, nil
		}
		return s.local(a, d, dst, defaultTries)
	})
}

// recent holds the keys that were accessed last, one for each hash, and draws from them
// in proportion to the target. It is a binary tree of sums: each sum is computed anew
// from two others, so that rounding errors do not accumulate.
type recent struct {
	keys  []godwit.Key // by slot
	sums  []float64    // 1: all; n: 2n and 2n+1; len(keys)+slot: the key's probability, 0 of no key
	shift uint         // 64 - log2(len(keys))
}

func (r Repurpose) newRecent() *recent {
	log := bits.Len(uint(or(r.Keys, defaultRecent) - 1))
	return &recent{keys: make([]godwit.Key, 1<<log), sums: make([]float64, 2<<log), shift: uint(64 - log)}
}

func (r *recent) slot(k godwit.Key) int { return int(uint64(k) * 0x9e3779b97f4a7c15 >> r.shift) }

// add adds a key with its probability.
func (r *recent) add(k godwit.Key, p float64) {
	i := r.slot(k)
	if r.keys[i] == k && r.sums[len(r.keys)+i] > 0 {
		return
	}
	r.keys[i] = k
	r.weigh(i, p)
}

func (r *recent) weigh(slot int, p float64) {
	i := len(r.keys) + slot
	r.sums[i] = p
	for i >>= 1; i > 0; i >>= 1 {
		r.sums[i] = r.sums[2*i] + r.sums[2*i+1]
	}
}

// find draws a key that is at this node and not in the sample, and reads its value. It
// removes keys that are no longer at the node.
func (r *recent) find(s *Sampler, a Access, d *drawn, dst []float32) (k godwit.Key, ok bool) {
	for range defaultTries {
		if !(r.sums[1] > 0) || d.restDrawn() {
			return 0, false
		}
		slot := r.draw(s.rand.Float64())
		k = r.keys[slot]
		if d != nil && d.seen.has(k) {
			continue
		}
		if a.PullIfLocal(k, dst) {
			return k, true
		}
		r.weigh(slot, 0)
	}
	return 0, false
}

// draw returns the slot at a fraction of the sum, which must be positive.
func (r *recent) draw(fraction float64) int {
	x := fraction * r.sums[1]
	i := 1
	for i < len(r.keys) {
		i *= 2
		// Rounding must not lead to a side without keys.
		if left := r.sums[i]; r.sums[i+1] > 0 && x >= left {
			x -= left
			i++
		}
	}
	return i - len(r.keys)
}
