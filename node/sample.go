package node

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

func (w *worker) makeSamplers() error {
	for _, spec := range w.n.cfg.Samplers {
		s, err := sampling.New(spec, w.n.model, w.n.cfg.Seed+uint64(w.id.Node)<<32+uint64(w.id.Local)+1)
		if err != nil {
			return err
		}
		w.samplers = append(w.samplers, &sampler{Sampler: s})
		if s.Watches() {
			w.watching = append(w.watching, s)
		}
	}
	return nil
}

// A sampleAccess is the worker as its samplers see it: it counts what they read.
type sampleAccess struct{ w *worker }

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

func (w *worker) PrepareSample(sampler, n int, start, end godwit.Clock) (godwit.SampleID, error) {
	w.enter()
	defer w.leave()
	if sampler < 0 || sampler >= len(w.samplers) {
		return 0, w.fail("prepare-sample", nil, fmt.Errorf("sampler %d does not exist, the run has %d", sampler, len(w.samplers)))
	}
	s := w.samplers[sampler]
	id, err := s.Prepare(sampleAccess{w}, n, start, end)
	s.publish()
	if err != nil {
		return 0, w.fail("prepare-sample", nil, err)
	}
	return id | godwit.SampleID(sampler)<<sampling.IDBits, nil
}

func (w *worker) PullSample(ctx context.Context, id godwit.SampleID, keys []godwit.Key, dst []float32) error {
	w.enter()
	defer w.leave()
	i := int(id >> sampling.IDBits)
	if i >= len(w.samplers) {
		return w.fail("pull-sample", nil, fmt.Errorf("%w: id %d", godwit.ErrSample, id))
	}
	s := w.samplers[i]
	err := s.Pull(ctx, sampleAccess{w}, id&(1<<sampling.IDBits-1), keys, dst)
	s.publish()
	if err != nil {
		return w.fail("pull-sample", nil, err)
	}
	return nil
}

func (w *worker) FinishSample(id godwit.SampleID) {
	w.enter()
	defer w.leave()
	if i := int(id >> sampling.IDBits); i < len(w.samplers) {
		w.samplers[i].Finish(id & (1<<sampling.IDBits - 1))
	}
}
