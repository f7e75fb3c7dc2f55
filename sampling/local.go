package sampling

import (
	"context"
	"fmt"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/named"
)

// Local draws when samples are pulled, until it draws a key that the node holds
// at that moment as owner or replica (NuPS: local sampling). After Tries draws
// without success it takes the last of them, and pulls it from where it is.
//
// # Bias
//
// Let p be the target and q the target's probability of drawing a local key.
// Then a sample is
//
//	a local key k      with probability  p(k) · (1 − (1−q)^Tries) / q
//	another key k      with probability  p(k) · (1−q)^(Tries−1)
//
// This is the target itself where everything is local (q = 1), where nothing is
// (q = 0), and with Tries = 1. In between it is the target conditioned on being
// local, with the rest mixed in ever more rarely as Tries grows; its distance
// from the target (total variation) is (1−q) · (1 − (1−q)^(Tries−1)). So among
// the local keys, and among the others, proportions are those of the target,
// and every key of the target stays possible. q drifts with the node's
// intents: a task whose data favours some keys on a node also samples them
// more there. Of n samples with replacement, n/Stats.Draws estimates q.
//
// NuPS and AdaPM search without a limit where nothing is local. They can also take the
// next local key above the draw. That finds one sooner, but gives a local key the
// probability of the whole gap below it; Godwit does not do it.
//
// With Spec.Distinct the same holds for each draw, with p conditioned on the
// keys that the sample does not have yet. Once a sample has used nearly all of
// the support, its last keys are drawn wherever they are.
type Local struct {
	// Tries is the most draws for a sample; 0 means 64. With eight nodes and
	// nothing announced 64 tries fail once in 5,000 samples, and they cost
	// less than one remote access.
	Tries int
}

const defaultTries = 64

func (l Local) Name() string {
	return named.Write("local", named.Param{Key: "tries", Value: float64(l.Tries)})
}
func (Local) Level() Level { return BestEffort }

func (l Local) check() error {
	if l.Tries < 0 {
		return fmt.Errorf("local scheme with %d tries, want at least 1, or 0 for %d", l.Tries, defaultTries)
	}
	return nil
}

func (Local) prepare(*Sampler, Access, *sample, godwit.Clock, godwit.Clock) error { return nil }

func (l Local) pull(ctx context.Context, s *Sampler, a Access, b *sample, keys []godwit.Key, dst []float32) error {
	return s.search(ctx, a, b, keys, dst, func(d *drawn, dst []float32) (godwit.Key, bool, error) {
		return s.local(a, d, dst, or(l.Tries, defaultTries))
	})
}

// search takes the keys that find returns, one by one. find reads the value of a local
// key into dst; search pulls the values of the others by one call.
func (s *Sampler) search(ctx context.Context, a Access, b *sample, keys []godwit.Key, dst []float32,
	find func(d *drawn, dst []float32) (k godwit.Key, local bool, err error)) error {
	d := s.drawnOf(b)
	s.remote.at = s.remote.at[:0]
	for i := range keys {
		lo, hi := i*s.dim, (i+1)*s.dim
		k, local, err := find(d, dst[lo:hi:hi])
		if err != nil {
			return err
		}
		s.take(d, k)
		keys[i] = k
		if !local {
			s.remote.at = append(s.remote.at, i)
		}
	}
	return s.remote.pull(ctx, a, keys, dst)
}

// local draws up to tries keys. Where one is local it stops and reads it into
// dst, else it returns the last.
func (s *Sampler) local(a Access, d *drawn, dst []float32, tries int) (k godwit.Key, local bool, err error) {
	for {
		if k, err = s.candidate(d); err != nil {
			return 0, false, err
		}
		if a.PullIfLocal(k, dst) {
			return k, true, nil
		}
		tries--
		if tries == 0 || d.restDrawn() {
			return k, false, nil
		}
	}
}

// remoteKeys is the part of a pull whose keys were not local. They are pulled by one
// call.
type remoteKeys struct {
	at   []int // positions in the pull
	keys []godwit.Key
	vals []float32
}

func (r *remoteKeys) pull(ctx context.Context, a Access, keys []godwit.Key, dst []float32) error {
	switch len(r.at) {
	case 0:
		return nil
	case len(keys):
		return a.Pull(ctx, keys, dst)
	}
	dim := len(dst) / len(keys)
	r.keys = r.keys[:0]
	for _, i := range r.at {
		r.keys = append(r.keys, keys[i])
	}
	n := len(r.at) * dim
	r.vals = slices.Grow(r.vals[:0], n)[:n]
	if err := a.Pull(ctx, r.keys, r.vals); err != nil {
		return err
	}
	for j, i := range r.at {
		copy(dst[i*dim:(i+1)*dim], r.vals[j*dim:])
	}
	return nil
}
