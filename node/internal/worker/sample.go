package worker

import (
	"context"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
)

// A sampleAccess is the worker as its samplers see it: it counts what they read.
type sampleAccess struct{ w *Worker }

func (a sampleAccess) PullIfLocal(k godwit.Key, dst []float32) bool {
	p, t := a.w.pullHere(k, dst)
	if p != protocol.Elsewhere {
		a.w.g.Watch.AccessedOne(k)
		a.w.tally.AccessedOne(k)
		a.w.count.sample.One(t, p)
	}
	return p != protocol.Elsewhere
}

func (a sampleAccess) Pull(ctx context.Context, keys []godwit.Key, dst []float32) error {
	a.w.req.waits = true
	h, err := a.w.access(ctx, "pull", wire.Pull, keys, dst, &a.w.count.sample)
	return a.w.finish(ctx, h, err)
}

func (a sampleAccess) Intent(keys []godwit.Key, start, end godwit.Clock) error {
	return a.w.intent(keys, start, end)
}

func (w *Worker) PrepareSample(sampler, n int, start, end godwit.Clock) (godwit.SampleID, error) {
	w.enter()
	defer w.leave()
	id, err := w.samples.Prepare(sampleAccess{w}, sampler, n, start, end)
	if err != nil {
		err = w.fail("prepare-sample", nil, err)
	}
	return id, err
}

// SeedSample implements [godwit.Seeder].
func (w *Worker) SeedSample(sampler int, seed1, seed2 uint64) { w.samples.Seed(sampler, seed1, seed2) }

func (w *Worker) PullSample(ctx context.Context, id godwit.SampleID, keys []godwit.Key, dst []float32) error {
	w.enter()
	defer w.leave()
	if err := w.inWindow(ctx, "pull-sample", nil); err != nil {
		return err
	}
	if err := w.samples.Pull(ctx, sampleAccess{w}, id, keys, dst); err != nil {
		return w.fail("pull-sample", nil, err)
	}
	return nil
}

func (w *Worker) FinishSample(id godwit.SampleID) {
	w.enter()
	defer w.leave()
	w.samples.Finish(id)
}
