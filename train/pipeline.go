package train

import (
	"context"
	"io"

	"github.com/godwit-ps/godwit"
)

// The batches that a worker loads ahead are bounded by their keys and samples, which
// take most of their memory, and by their number, for tasks with tiny batches.
const (
	maxAheadKeys    = 1 << 19
	maxAheadBatches = 2048
)

// A pipeline loads the batches of one worker ahead of their training. They wait
// in a ring buffer and are reused.
type pipeline[D any] struct {
	w    godwit.Worker
	t    Trainer[D]
	last int // the run's last epoch

	epoch, step int // the next batch to load
	ring        []*Batch[D]
	first, n    int // the waiting batches are the n from ring[first] on, wrapping around
	keys        int // keys and samples of the waiting batches
	ready       int // how many of them are announced: all but one that begins with SyncAll
}

func newPipeline[D any](w godwit.Worker, t Trainer[D], first, last int) *pipeline[D] {
	return &pipeline[D]{w: w, t: t, last: last, epoch: first}
}

// next returns the batch to train now, after loading further ones as far as memory and
// SyncAll allow. The batch is the caller's until it calls done.
func (p *pipeline[D]) next(ctx context.Context) (*Batch[D], error) {
	for p.ready == 0 || p.ready == p.n && p.n < maxAheadBatches && p.keys < maxAheadKeys {
		if p.ready == p.n {
			if p.epoch > p.last {
				break
			}
			p.load()
		}
		b := p.ring[(p.first+p.ready)%len(p.ring)]
		if b.SyncAll && p.ready > 0 {
			break
		}
		if b.SyncAll {
			if err := SyncAll(ctx, p.w); err != nil {
				return nil, err
			}
		}
		if err := p.announce(b); err != nil {
			return nil, err
		}
	}
	return p.ring[p.first], nil
}

// load fills the next batch.
func (p *pipeline[D]) load() {
	b := p.slot()
	b.SyncAll = false
	p.t.Load(b, p.epoch, p.step)
	if p.step++; p.step == p.t.Steps() {
		p.epoch, p.step = p.epoch+1, 0
	}
	p.n++
	p.keys += b.size()
}

// announce signals the intents of the next batch that is not announced yet.
func (p *pipeline[D]) announce(b *Batch[D]) (err error) {
	start := p.w.Clock() + godwit.Clock(p.ready)
	if err := p.w.Intent(b.Keys, start, start+1); err != nil {
		return err
	}
	if b.Samples > 0 {
		if b.Sample, err = p.w.PrepareSample(b.Sampler, b.Samples, start, start+1); err != nil {
			return err
		}
	}
	p.ready++
	return nil
}

func (b *Batch[D]) size() int { return len(b.Keys) + b.Samples }

// slot returns the batch behind the last waiting one, growing the ring when it
// is full.
func (p *pipeline[D]) slot() *Batch[D] {
	if p.n == len(p.ring) {
		// Rotate the ring so that it starts at 0 and ends with the new batch.
		ring := make([]*Batch[D], 0, len(p.ring)+1)
		ring = append(ring, p.ring[p.first:]...)
		ring = append(ring, p.ring[:p.first]...)
		p.ring, p.first = append(ring, new(Batch[D])), 0
	}
	return p.ring[(p.first+p.n)%len(p.ring)]
}

// done returns the batch that next returned, and advances the clock.
func (p *pipeline[D]) done() {
	p.drop()
	p.w.Advance()
}

func (p *pipeline[D]) drop() {
	b := p.ring[p.first]
	if b.Samples > 0 {
		p.w.FinishSample(b.Sample)
	}
	p.keys -= b.size()
	p.first = (p.first + 1) % len(p.ring)
	p.n--
	p.ready--
}

// close discards the batches that will not be trained, and closes the trainer.
func (p *pipeline[D]) close() error {
	for p.ready > 0 {
		p.drop()
	}
	if c, ok := p.t.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
