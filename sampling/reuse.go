package sampling

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/named"
)

// Reuse draws a pool of keys, returns the whole pool several times in a new random
// order each time, and then draws the next pool (NuPS: sample reuse). The keys are
// announced when the sample is prepared, as by [Prepared]. But a key stays where it is
// between its uses, unless another node wants it, so that about one key in Uses has to
// move.
//
// # Dependence
//
// Every key that the pool returns follows the target. The keys of one round
// through the pool are independent of each other, too: a random order of
// independent draws is one. Keys of different rounds of one pool are not: two
// of them are the same draw with probability 1/Pool. Keys of different pools are
// independent. So keys that the worker took Pool·Uses or more apart are
// independent: that is the bound of the level [Bounded].
//
// Without replacement (Spec.Distinct) a sample of n keys takes the next n that
// the pool returns, skips those that it has already, and draws new ones in their place.
// Every single sample is then distributed exactly as with [Independent]: each key that
// the pool returns is either a draw that the sample has seen, which it skips, or
// independent of all that it has seen. (A sample must not take more than n from the pool: where the next one
// begins would then depend on what is in the pool.) Only different samples
// depend on each other. Pool should be well above n, or little is reused.
//
// # Postponing
//
// With Postpone, a key that is not local when it is next is moved to the end of its
// sample, so that it can arrive while the other keys are used. A sample that is pulled
// in small parts then waits less often. The order of the keys depends on what is local,
// and so does a part of a sample. But every key that was looked at is used: the keys
// that a sample postponed and did not use before it was finished come first in the
// worker's next sample, and are not postponed again. So all frequencies tend to the
// target's ([LongTerm]). (NuPS drops the rest of a sample that is finished, and with it
// the keys that are seldom local.)
//
// Without replacement that holds of samples that are pulled to their end. A sample that takes a key
// which earlier ones postponed cannot draw it once more, and how far one looks that is finished before its end depends
// on what is local. So keys that are seldom local come less often than they should where such samples are
// a good part of the support: with half of the keys local, a tenth too seldom in samples of 8 of 10 keys,
// by 2 % in samples of 20 of 100, and by no more than chance in samples of 20 of 1,000.
type Reuse struct {
	// Pool is how many keys are drawn at a time; 0 means 250.
	Pool int
	// Uses is how often each key is returned; 0 means 16.
	Uses int
	// Postpone moves keys that are not local to the end of their sample.
	Postpone bool
}

const (
	defaultPool = 250
	defaultUses = 16
	// maxPool bounds the memory of a pool and the time that drawing it takes.
	maxPool = 1 << 20
)

func (r Reuse) Name() string {
	name := "reuse"
	if r.Postpone {
		name = "postpone"
	}
	return named.Write(name, named.Param{Key: "pool", Value: float64(r.Pool)}, named.Param{Key: "uses", Value: float64(r.Uses)})
}

func (r Reuse) Level() Level {
	if r.Postpone {
		return LongTerm
	}
	return Bounded
}

func (r Reuse) check() error {
	if r.Pool < 0 || r.Pool > maxPool {
		return fmt.Errorf("a pool of %d keys, want 1 … %d, or 0 for %d", r.Pool, maxPool, defaultPool)
	}
	if r.Uses < 0 {
		return fmt.Errorf("%d uses of a key, want at least 1, or 0 for %d", r.Uses, defaultUses)
	}
	return nil
}

func (r Reuse) newPool() *pool {
	return &pool{size: or(r.Pool, defaultPool), uses: or(r.Uses, defaultUses)}
}

// or returns n, or the default def if n is 0.
func or(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}

func (r Reuse) prepare(s *Sampler, a Access, b *sample, start, end godwit.Clock) error {
	err := s.announce(a, b, start, end)
	b.head, b.ahead = 0, b.left
	return err
}

func (r Reuse) pull(ctx context.Context, s *Sampler, a Access, b *sample, keys []godwit.Key, dst []float32) error {
	if !r.Postpone {
		return Prepared{}.pull(ctx, s, a, b, keys, dst)
	}
	s.remote.at = s.remote.at[:0]
	left := b.left
	for i := range keys {
		lo, hi := i*s.dim, (i+1)*s.dim
		k, local := s.next(a, b, left-i, dst[lo:hi:hi])
		keys[i] = k
		if !local {
			s.remote.at = append(s.remote.at, i)
		}
	}
	return s.remote.pull(ctx, a, keys, dst)
}

// next takes the next key of a sample that has left keys left, and reads its
// value if it is local.
//
// The keys that are left are in a ring that begins at b.head: first b.ahead keys that
// were not looked at yet, of which the first b.due must not be postponed, then the
// postponed ones.
func (s *Sampler) next(a Access, b *sample, left int, dst []float32) (k godwit.Key, local bool) {
	for {
		k = b.keys[b.head]
		b.head++
		if b.head == len(b.keys) {
			b.head = 0
		}
		first := b.ahead > 0
		if first {
			b.ahead--
		}
		due := b.due > 0
		if due {
			b.due--
		}
		local = a.PullIfLocal(k, dst)
		if local || due || !first || left == 1 {
			return k, local
		}
		s.stats.PutOff++
		b.keys[(b.head+left-1)%len(b.keys)] = k
	}
}

// A pool keeps draws and returns each of them several times.
type pool struct {
	size, uses int
	keys       []godwit.Key // in the order of this round
	at         int          // how many of them were returned in this round
	round      int          // 1 … uses
}

// next returns the next key of the pool.
func (p *pool) next(s *Sampler) (godwit.Key, error) {
	if p.at == len(p.keys) {
		if err := p.nextRound(s); err != nil {
			return 0, err
		}
	}
	k := p.keys[p.at]
	p.at++
	return k, nil
}

// nextRound begins the next round, with the same keys in another order or with new
// ones.
func (p *pool) nextRound(s *Sampler) error {
	p.at = 0
	if len(p.keys) == p.size && p.round < p.uses {
		p.round++
		s.rand.Shuffle(len(p.keys), func(i, j int) { p.keys[i], p.keys[j] = p.keys[j], p.keys[i] })
		return nil
	}
	p.round = 1
	p.keys = p.keys[:0]
	for range p.size {
		k, err := s.draw()
		if err != nil {
			return err
		}
		p.keys = append(p.keys, k)
	}
	return nil
}

// postponed holds keys that samples postponed and did not use before they were
// finished. New samples take these keys before they draw. So there are never more of
// them than keys of the samples that were open at a time.
type postponed struct{ keys []godwit.Key }

// take moves postponed keys into a new sample, and returns how many. A sample without
// replacement takes each key once.
func (o *postponed) take(d *drawn, keys []godwit.Key) (n int) {
	if len(o.keys) == 0 {
		return 0
	}
	rest := o.keys[:0]
	for _, k := range o.keys {
		if n == len(keys) || d != nil && d.seen.has(k) {
			rest = append(rest, k)
			continue
		}
		keys[n] = k
		n++
		if d != nil {
			d.seen.add(k)
		}
	}
	o.keys = rest
	return n
}

// add adds keys.
func (o *postponed) add(keys []godwit.Key) { o.keys = append(o.keys, keys...) }

// addRest adds the postponed keys of a sample whose rest is not pulled: those that it
// postponed itself, and those that it took from earlier samples.
func (o *postponed) addRest(b *sample) {
	for i := range b.left {
		if i < b.due || i >= b.ahead {
			o.keys = append(o.keys, b.keys[(b.head+i)%len(b.keys)])
		}
	}
}
