package sampling

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/godwit-ps/godwit"
)

// A Spec describes a sampler of a run: what it draws, and how.
type Spec struct {
	// Name names the sampler. Samplers of one worker that share a
	// seed are independent of each other if their names differ.
	Name string
	// Table is the index of the table that keys are drawn from.
	Table int
	// Dist is the target distribution, over as many rows as the table has or
	// over its first ones.
	Dist Distribution
	// Level is how closely samples must conform to Dist; the zero Level asks
	// for independent draws from it.
	Level Level
	// Scheme, where set, takes the place of the one that the system picks for
	// Level, whatever it promises.
	Scheme Scheme
	// Distinct makes the keys of each sample distinct (without replacement).
	Distinct bool
}

// An Access is what a sampler needs of the worker that it belongs to. Keys and
// values are those of [godwit.Worker].
type Access interface {
	// PullIfLocal reads the value of k if this node holds it, without waiting.
	PullIfLocal(k godwit.Key, dst []float32) bool
	// Pull reads the values of keys, wherever they are.
	Pull(ctx context.Context, keys []godwit.Key, dst []float32) error
	// Intent announces accesses to keys in [start, end). It must not keep keys.
	Intent(keys []godwit.Key, start, end godwit.Clock) error
}

const (
	// MaxOpen bounds the samples of a sampler that are open: prepared, and
	// neither finished nor pulled to their end.
	MaxOpen = 1 << slotBits
	// MaxPrepared bounds the keys that all open samples together have left.
	MaxPrepared = 1 << 25
	// IDBits is the length of the ids that Prepare returns. A worker with
	// several samplers has the bits above them to say whose id it is.
	IDBits = slotBits + genBits

	slotBits = 16
	genBits  = 40
)

// Stats counts what a sampler did.
type Stats struct {
	Open     int    // samples open now
	Prepared uint64 // keys announced to Prepare
	Pulled   uint64 // keys asked for from Pull
	Draws    uint64 // draws from the distribution, with those that were not taken
	// PutOff counts keys that the scheme Reuse put off, Repurposed keys that the
	// scheme Repurpose found among those accessed directly.
	PutOff, Repurposed uint64
}

// A Sampler draws the samples of one Spec for one worker. It belongs to the
// worker's goroutine: its methods must not be called concurrently.
type Sampler struct {
	spec   Spec
	how    Scheme
	base   godwit.Key // of the table's first row
	dim    int
	rows   uint64
	src    source // what rand draws from
	rand   *rand.Rand
	seeds  [2]uint64 // of the next sample,
	seeded bool      // … if it has some

	slots []*sample // by the low bits of an id
	free  []int     // slots that are not open
	left  int       // summed over all open samples

	maxRejected uint64     // see candidate
	once        drawn      // of a sample that is drawn in one go
	spare       []*drawn   // of samples that were finished
	order       []timed    // scratch of drawRest
	remote      remoteKeys // scratch of schemes that fetch a part
	stats       Stats

	pool      *pool     // of the scheme Reuse
	postpones bool      // … with Postpone
	postponed postponed // … with Postpone
	recent    *recent   // of the scheme Repurpose
}

// A sample is a slot for one prepared sample after the other.
type sample struct {
	seeded bool // it draws from src
	src    rand.PCG
	gen    uint64       // grows with each use, so that ids of earlier ones are unknown
	left   int          // keys not pulled yet; 0 if the slot is not open
	keys   []godwit.Key // of the schemes that draw at Prepare: all keys of the sample
	// head, ahead and due are Reuse's, see next.
	head, ahead, due int
	// drawn is nil before the first pull, and always with replacement or if
	// the sample was drawn in one go.
	drawn *drawn
}

// New checks the spec against the model. Each worker makes its own Sampler of a
// spec, with a seed of its own.
func New(spec Spec, m *godwit.Model, seed uint64) (*Sampler, error) {
	if err := check(spec, m); err != nil {
		return nil, fmt.Errorf("sampling: sampler %q: %w", spec.Name, err)
	}
	s := &Sampler{
		spec: spec,
		how:  spec.scheme(),
		base: m.Key(spec.Table, 0),
		dim:  m.Table(spec.Table).Dim,
		rows: spec.Dist.Rows(),
	}
	s.src.own = newPCG(spec.Name, seed)
	s.src.now = s.src.own
	s.rand = rand.New(&s.src)
	s.maxRejected = rejections(sorted(spec.Dist))
	switch x := s.how.(type) {
	case Reuse:
		s.pool, s.postpones = x.newPool(), x.Postpone
	case Repurpose:
		s.recent = x.newRecent()
	}
	return s, nil
}

func (s Spec) scheme() Scheme {
	if s.Scheme != nil {
		return s.Scheme
	}
	return s.Level.Scheme()
}

// Fingerprint is equal for two valid specs that draw the same.
func (s Spec) Fingerprint() string {
	return fmt.Sprintf("%s:%d:%s:%s:%v", s.Name, s.Table, s.Dist.Name(), s.scheme().Name(), s.Distinct)
}

func check(spec Spec, m *godwit.Model) error {
	switch {
	case spec.Table < 0 || spec.Table >= m.Tables():
		return fmt.Errorf("table %d does not exist, the model has tables 0 … %d", spec.Table, m.Tables()-1)
	case spec.Dist == nil:
		return errors.New("no distribution is given, set Dist")
	}
	if err := spec.Level.check(); err != nil {
		return err
	}
	t := m.Table(spec.Table)
	if n := spec.Dist.Rows(); n == 0 || n > t.Rows {
		return fmt.Errorf("distribution %s draws from %d rows, want 1 … %d as table %q has", spec.Dist.Name(), n, t.Rows, t.Name)
	}
	return checkScheme(spec.scheme())
}

// checkScheme returns what is wrong with a scheme. A pointer to one has its methods, and nothing else of it.
func checkScheme(s Scheme) error {
	switch s.(type) {
	case Independent, Prepared, Reuse, Local, Repurpose:
		return s.check()
	}
	return fmt.Errorf("the scheme is a %T, want a value and no pointer, such as Reuse{}", s)
}

// A source is what a sampler draws from: its own generator, or that of a sample.
type source struct{ own, now *rand.PCG }

func (s *source) Uint64() uint64 { return s.now.Uint64() }

// of has it draw for a sample.
func (s *source) of(b *sample) {
	if s.now = s.own; b.seeded {
		s.now = &b.src
	}
}

// newPCG hashes the seed with the sampler's name: workers have neighbouring
// seeds, and two samplers of a worker must not draw the same rows.
func newPCG(name string, seed uint64) *rand.PCG {
	h := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, seed), name...))
	return rand.NewPCG(binary.LittleEndian.Uint64(h[:]), binary.LittleEndian.Uint64(h[8:]))
}

// Seed has the next sample that is prepared draw by a generator of its own with these seeds:
// its draws do not depend on those of other samples, but where a scheme uses draws for several
// samples.
func (s *Sampler) Seed(seed1, seed2 uint64) { s.seeds, s.seeded = [2]uint64{seed1, seed2}, true }

// Prepare opens a sample of n keys that will be pulled while the worker's clock
// is in [start, end). The empty sample has id 0, is never open and needs no
// Finish.
//
// Errors, after which nothing is open that was not before: n is negative or,
// with Spec.Distinct, larger than the distribution's support; [godwit.ErrFull]
// if MaxOpen or MaxPrepared would be exceeded; what Intent returned.
func (s *Sampler) Prepare(a Access, n int, start, end godwit.Clock) (godwit.SampleID, error) {
	if err := s.checkPrepare(n); err != nil || n == 0 {
		return 0, err
	}
	slot := s.slot()
	b := s.slots[slot]
	b.gen = b.gen%(1<<genBits-1) + 1
	b.left = n
	s.left += n
	s.stats.Open++
	if b.seeded = s.seeded; b.seeded {
		b.src.Seed(s.seeds[0], s.seeds[1])
		s.seeded = false
	}
	s.src.of(b)
	if err := s.how.prepare(s, a, b, start, end); err != nil {
		s.close(slot)
		s.seeded = b.seeded // for who prepares it again
		return 0, err
	}
	s.stats.Prepared += uint64(n)
	return godwit.SampleID(b.gen<<slotBits | uint64(slot)), nil
}

func (s *Sampler) checkPrepare(n int) error {
	switch {
	case n < 0:
		return fmt.Errorf("sampler %q: a sample of %d keys, want 0 or more", s.spec.Name, n)
	case s.spec.Distinct && uint64(n) > s.spec.Dist.Support():
		return fmt.Errorf("sampler %q: a sample of %d distinct keys from distribution %s, which has only %d",
			s.spec.Name, n, s.spec.Dist.Name(), s.spec.Dist.Support())
	case s.stats.Open == MaxOpen && n > 0:
		return fmt.Errorf("%w: sampler %q has %d samples open; pull them to their end, finish them, or prepare less far ahead",
			godwit.ErrFull, s.spec.Name, s.stats.Open)
	case n > MaxPrepared-s.left:
		return fmt.Errorf("%w: sampler %q has %d samples with %d keys open, %d more exceed %d; pull or finish some, or prepare less far ahead",
			godwit.ErrFull, s.spec.Name, s.stats.Open, s.left, n, MaxPrepared)
	}
	return nil
}

// slot returns a slot that is not open.
func (s *Sampler) slot() int {
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		return slot
	}
	s.slots = append(s.slots, &sample{})
	return len(s.slots) - 1
}

// Pull takes the next len(keys) keys of a sample: it writes them to keys and
// their values, one after the other, to dst. With the last of its keys the
// sample is finished.
//
// Errors: [godwit.ErrSample] if the id is unknown or the sample has fewer keys
// left, [godwit.ErrLength] if dst is not len(keys) values long; then nothing was
// done. After an error of the worker's own Pull, the keys that were asked for
// are spent.
func (s *Sampler) Pull(ctx context.Context, a Access, id godwit.SampleID, keys []godwit.Key, dst []float32) error {
	if len(dst) != len(keys)*s.dim {
		return fmt.Errorf("%w: %d floats for %d samples of sampler %q, want %d", godwit.ErrLength, len(dst), len(keys), s.spec.Name, len(keys)*s.dim)
	}
	if len(keys) == 0 && id == 0 {
		return nil
	}
	slot, ok := s.find(id)
	if !ok {
		return fmt.Errorf("%w: sampler %q has no sample %d open; it was never prepared, or was pulled to its end or finished", godwit.ErrSample, s.spec.Name, id)
	}
	b := s.slots[slot]
	if len(keys) > b.left {
		return fmt.Errorf("%w: %d keys asked for from sample %d of sampler %q, %d are left", godwit.ErrSample, len(keys), id, s.spec.Name, b.left)
	}
	if len(keys) == 0 {
		return nil
	}
	s.src.of(b)
	err := s.how.pull(ctx, s, a, b, keys, dst)
	s.stats.Pulled += uint64(len(keys))
	b.left -= len(keys)
	s.left -= len(keys)
	if b.left == 0 {
		s.close(slot)
	}
	return err
}

// Finish discards the rest of a sample. It does nothing if the sample is finished
// already.
func (s *Sampler) Finish(id godwit.SampleID) {
	slot, ok := s.find(id)
	if !ok {
		return
	}
	if s.postpones {
		s.postponed.addRest(s.slots[slot])
	}
	s.close(slot)
}

// Watches reports whether the sampler needs to know of direct accesses ([Sampler.Accessed]).
func (s *Sampler) Watches() bool { return s.recent != nil }

// Accessed tells a sampler that watches of keys, of any table, that its worker
// accessed by itself.
func (s *Sampler) Accessed(keys []godwit.Key) {
	for _, k := range keys {
		if row := uint64(k - s.base); k >= s.base && row < s.rows {
			if p := s.spec.Dist.Prob(row); p > 0 {
				s.recent.add(k, p)
			}
		}
	}
}

// Stats returns what the sampler did so far.
func (s *Sampler) Stats() Stats { return s.stats }

// find returns the slot of an open sample.
func (s *Sampler) find(id godwit.SampleID) (slot int, ok bool) {
	slot = int(id & (MaxOpen - 1))
	if slot >= len(s.slots) {
		return 0, false
	}
	b := s.slots[slot]
	return slot, b.left > 0 && b.gen == uint64(id)>>slotBits
}

// close frees a slot that is open, or was pulled to its end just now.
func (s *Sampler) close(slot int) {
	b := s.slots[slot]
	s.left -= b.left
	b.left = 0
	if b.drawn != nil {
		s.spare = append(s.spare, b.drawn)
		b.drawn = nil
	}
	s.free = append(s.free, slot)
	s.stats.Open--
}

// draw draws a key from the target.
func (s *Sampler) draw() (godwit.Key, error) {
	s.stats.Draws++
	row := s.spec.Dist.Draw(s.rand)
	if row >= s.rows {
		return 0, fmt.Errorf("sampler %q: distribution %s drew row %d, it promises rows 0 … %d", s.spec.Name, s.spec.Dist.Name(), row, s.rows-1)
	}
	return s.base + godwit.Key(row), nil
}

// source returns the next draw for a sample, a new one or one from the pool.
func (s *Sampler) source(d *drawn) (godwit.Key, error) {
	if s.pool == nil {
		return s.draw()
	}
	if d != nil {
		if d.pooled == 0 {
			return s.draw()
		}
		d.pooled--
	}
	return s.pool.next(s)
}

// fill draws len(keys) keys into keys, given what was drawn before.
func (s *Sampler) fill(d *drawn, keys []godwit.Key) error {
	for i := range keys {
		k, err := s.candidate(d)
		if err != nil {
			return err
		}
		s.take(d, k)
		keys[i] = k
	}
	return nil
}
