package worker

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/sampling"
)

// A sampler is one of the worker's, with what Stats may read of it meanwhile.
type sampler struct {
	*sampling.Sampler
	draws, putOff, repurposed atomic.Uint64
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

// samples are a worker's samplers.
type samples struct {
	each     []*sampler
	watching []*sampling.Sampler // those that want to hear of direct accesses
}

func (w *Worker) makeSamplers() error {
	for _, spec := range w.g.Samplers {
		s, err := sampling.New(spec, w.g.Model, w.g.Seed+uint64(w.id.Node)<<32+uint64(w.id.Local)+1)
		if err != nil {
			return err
		}
		w.samples.each = append(w.samples.each, &sampler{Sampler: s})
		if s.Watches() {
			w.samples.watching = append(w.samples.watching, s)
		}
	}
	return nil
}

// A sampleAccess is the worker as its samplers see it: it counts what they read.
type sampleAccess struct{ w *Worker }

func (a sampleAccess) PullIfLocal(k godwit.Key, dst []float32) bool {
	p := a.w.pullHere(k, dst)
	if p == protocol.Elsewhere {
		return false
	}
	add(&a.w.count.sample[p], 1)
	return true
}

func (a sampleAccess) Pull(ctx context.Context, keys []godwit.Key, dst []float32) error {
	h, err := a.w.access(ctx, "pull", wire.Pull, keys, dst, &a.w.count.sample)
	if err != nil || h == 0 {
		return err
	}
	return a.w.wait(ctx, h)
}

func (a sampleAccess) Intent(keys []godwit.Key, start, end godwit.Clock) error {
	return a.w.intent(keys, start, end)
}

func (w *Worker) PrepareSample(sampler, n int, start, end godwit.Clock) (godwit.SampleID, error) {
	w.enter()
	defer w.leave()
	if sampler < 0 || sampler >= len(w.samples.each) {
		return 0, w.fail("prepare-sample", nil, fmt.Errorf("sampler %d does not exist, the run has %d", sampler, len(w.samples.each)))
	}
	s := w.samples.each[sampler]
	id, err := s.Prepare(sampleAccess{w}, n, start, end)
	s.publish()
	if err != nil {
		return 0, w.fail("prepare-sample", nil, err)
	}
	return id | godwit.SampleID(sampler)<<sampling.IDBits, nil
}

func (w *Worker) PullSample(ctx context.Context, id godwit.SampleID, keys []godwit.Key, dst []float32) error {
	w.enter()
	defer w.leave()
	i := int(id >> sampling.IDBits)
	if i >= len(w.samples.each) {
		return w.fail("pull-sample", nil, fmt.Errorf("%w: id %d", godwit.ErrSample, id))
	}
	s := w.samples.each[i]
	err := s.Pull(ctx, sampleAccess{w}, id&(1<<sampling.IDBits-1), keys, dst)
	s.publish()
	if err != nil {
		return w.fail("pull-sample", nil, err)
	}
	return nil
}

func (w *Worker) FinishSample(id godwit.SampleID) {
	w.enter()
	defer w.leave()
	if i := int(id >> sampling.IDBits); i < len(w.samples.each) {
		w.samples.each[i].Finish(id & (1<<sampling.IDBits - 1))
	}
}
