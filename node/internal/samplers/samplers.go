package samplers

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/sampling"
)

// Samplers are those of one worker, in the order in which the run names them.
type Samplers struct {
	each     []*sampler
	names    []string            // of each
	watching []*sampling.Sampler // those that want to hear of direct accesses
	run      uint64              // the seed of the run
}

// A sampler is one of the worker's, with what others may read of it meanwhile.
type sampler struct {
	*sampling.Sampler
	draws, putOff, repurposed atomic.Uint64
}

// New returns the samplers of a worker, with the seeds of the run and of the worker.
func New(specs []sampling.Spec, m *godwit.Model, run, seed uint64) (Samplers, error) {
	all := Samplers{run: run}
	for _, spec := range specs {
		s, err := sampling.New(spec, m, seed)
		if err != nil {
			return Samplers{}, err
		}
		all.each, all.names = append(all.each, &sampler{Sampler: s}), append(all.names, spec.Name)
		if s.Watches() {
			all.watching = append(all.watching, s)
		}
	}
	return all, nil
}

// publish takes over what the sampler counted.
func (s *sampler) publish() {
	st := s.Sampler.Stats()
	for _, c := range [...]struct {
		to *atomic.Uint64
		n  uint64
	}{{&s.draws, st.Draws}, {&s.putOff, st.PutOff}, {&s.repurposed, st.Repurposed}} {
		if c.to.Load() != c.n {
			c.to.Store(c.n)
		}
	}
}

// Accessed tells the samplers that want to hear of it what the worker pulled.
func (all *Samplers) Accessed(keys []godwit.Key) {
	for _, s := range all.watching {
		s.Accessed(keys)
	}
}

// Prepare is godwit.Worker.PrepareSample, with the worker as the samplers see it.
func (all *Samplers) Prepare(a sampling.Access, i, n int, start, end godwit.Clock) (godwit.SampleID, error) {
	if i < 0 || i >= len(all.each) {
		return 0, fmt.Errorf("there is no sampler number %d, the run has %q, from number 0 on", i, all.names)
	}
	s := all.each[i]
	id, err := s.Prepare(a, n, start, end)
	s.publish()
	return id | godwit.SampleID(i)<<sampling.IDBits, err
}

// Seed has the next sample of a sampler draw by seeds of its own. Samplers that get the same seeds, such as those of one step, are independent of
// each other.
func (all *Samplers) Seed(i int, seed1, seed2 uint64) {
	if i >= 0 && i < len(all.each) {
		all.each[i].Seed(seed1^all.run*0x9e3779b97f4a7c15, seed2^uint64(i)*0x9e3779b97f4a7c15)
	}
}

// Pull is godwit.Worker.PullSample.
func (all *Samplers) Pull(ctx context.Context, a sampling.Access, id godwit.SampleID, keys []godwit.Key, dst []float32) error {
	i := int(id >> sampling.IDBits)
	if i >= len(all.each) {
		return fmt.Errorf("%w: id %d", godwit.ErrSample, id)
	}
	s := all.each[i]
	defer s.publish()
	return s.Pull(ctx, a, id&(1<<sampling.IDBits-1), keys, dst)
}

// Finish is godwit.Worker.FinishSample.
func (all *Samplers) Finish(id godwit.SampleID) {
	if i := int(id >> sampling.IDBits); i < len(all.each) {
		all.each[i].Finish(id & (1<<sampling.IDBits - 1))
	}
}

// Counts are what samplers did.
type Counts struct{ Draws, PutOff, Repurposed uint64 }

// Add adds those of other samplers.
func (c *Counts) Add(x Counts) {
	c.Draws += x.Draws
	c.PutOff += x.PutOff
	c.Repurposed += x.Repurposed
}

// Counts takes stock. Any goroutine may call it.
func (all *Samplers) Counts() (c Counts) {
	for _, s := range all.each {
		c.Draws += s.draws.Load()
		c.PutOff += s.putOff.Load()
		c.Repurposed += s.repurposed.Load()
	}
	return c
}
