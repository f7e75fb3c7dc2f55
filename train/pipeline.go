package train

import (
	"context"
	"errors"
	"io"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/schedule"
)

// The batches that a worker loads ahead are bounded by their keys and samples, which
// take most of their memory, and by their number, for tasks with tiny batches.
const (
	maxAheadKeys    = 1 << 19
	maxAheadBatches = 2048
)

// A source is where a worker's chunks come from.
type source interface {
	// take gives a worker its next chunk, of the same epoch as the last or a later one. It should
	// have so many ahead of their training. One that must have a chunk waits; there is none at
	// the end of the run, or what is left of it is for others.
	take(ctx context.Context, worker, ahead int, must bool) (c schedule.Chunk, ok bool, err error)
	// finish takes note that a worker has trained a chunk.
	finish(worker int, c schedule.Chunk)
}

// A pipeline loads the batches of one worker ahead of their training. They wait
// in a ring buffer and are reused.
type pipeline[D any] struct {
	w      godwit.Worker
	t      Trainer[D]
	others []other[D] // of parts of other divisions of the data
	worker int        // its number at the node
	from   source
	nodes  int // among which the chunks of an epoch are divided at first; 0: each worker has its own
	chunks int
	age    float64 // for how many of its chunks the worker may hear nothing of others; 0: any number

	chunk       schedule.Chunk // that is being loaded
	step, steps int            // the next of it, and how many it has
	ring        []*loaded[D]
	first, n    int // the waiting batches are the n from ring[first] on, wrapping around
	keys        int // keys and samples of the waiting batches
	rec         record
	ready       int // how many of them are announced: all but one of a stage that has not begun
	begun       int // the stages of the epoch that have begun
}

// An other trainer is that of a part of the data as an earlier run of another number of workers, or nodes, had divided them.
type other[D any] struct {
	parts, nodes, part int
	t                  Trainer[D]
}

// trainer returns the trainer of a chunk.
func (p *pipeline[D]) trainer(c schedule.Chunk) Trainer[D] {
	for _, o := range p.others {
		if o.parts == c.Parts && o.nodes == c.Nodes && o.part == c.Part() {
			return o.t
		}
	}
	return p.t
}

// training returns the trainer of the batch that next returned.
func (p *pipeline[D]) training() Trainer[D] { return p.trainer(p.ring[p.first].chunk) }

// trainers yields all trainers.
func (p *pipeline[D]) trainers(yield func(Trainer[D]) bool) {
	if p.t == nil || !yield(p.t) {
		return
	}
	for _, o := range p.others {
		if !yield(o.t) {
			return
		}
	}
}

// flush has trainers push what they have gathered.
func (p *pipeline[D]) flush(ctx context.Context) error {
	for t := range p.trainers {
		if f, ok := t.(Flusher); ok {
			if err := f.Flush(ctx); err != nil {
				return err
			}
		}
	}
	p.rec.flushed()
	return nil
}

// A loaded batch waits for its training.
type loaded[D any] struct {
	Batch[D]
	chunk schedule.Chunk
	step  int
	last  bool // of its chunk
}

// next returns the batch of the epoch to train now, after loading further ones as far as
// memory, stages and the chunks that are there allow; nil if the worker has no further batch
// of the epoch. The batch is the caller's until it calls done.
func (p *pipeline[D]) next(ctx context.Context, epoch int) (*Batch[D], error) {
	for p.ready == 0 || p.ready == p.n && p.n < maxAheadBatches && p.keys < maxAheadKeys {
		if p.ready == p.n {
			if ok, err := p.load(ctx); !ok || err != nil {
				if err != nil {
					return nil, err
				}
				break
			}
		}
		b := p.ring[(p.first+p.ready)%len(p.ring)]
		waits := b.chunk.Stages > 0 && (b.chunk.Epoch > epoch || b.chunk.Stage() >= p.begun)
		if waits && p.ready > 0 || p.ready == 0 && b.chunk.Epoch > epoch {
			break
		}
		if waits {
			if err := p.meet(ctx, b.chunk.Stage()+1); err != nil {
				return nil, err
			}
		}
		if err := p.announce(b); err != nil {
			return nil, err
		}
	}
	if p.ready == 0 || p.ring[p.first].chunk.Epoch > epoch {
		return nil, nil
	}
	return &p.ring[p.first].Batch, nil
}

// meet begins the stages before one, with all workers of the run.
func (p *pipeline[D]) meet(ctx context.Context, stage int) error {
	for ; p.begun < stage; p.begun++ {
		if err := p.w.SyncAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// load fills the next batch, if there is one.
func (p *pipeline[D]) load(ctx context.Context) (ok bool, err error) {
	for p.step == p.steps {
		if p.chunk, ok, err = p.from.take(ctx, p.worker, p.ahead(), p.n == 0); !ok {
			return false, err
		}
		p.step, p.steps = 0, p.trainer(p.chunk).Steps(p.chunk.Epoch, p.chunk.Chunk)
		boundAge(p.w, p.age, p.steps)
		p.skip()
	}
	b := p.slot()
	p.fill(b)
	p.n++
	p.keys += b.size()
	return true, nil
}

// ahead is how many chunks the worker should have, so that what it announces of them comes in time: the one that it
// trains, and as many as have the steps that it looks ahead.
func (p *pipeline[D]) ahead() int {
	if p.steps == 0 {
		return 0
	}
	return 1 + (int(p.w.Lookahead())+p.steps-1)/p.steps
}

// skip loads the steps of the chunk that are done already, since what is drawn for them comes
// before what is drawn for the others. A chunk without further steps is finished.
func (p *pipeline[D]) skip() {
	for p.step < min(p.chunk.Skip, p.steps) {
		p.fill(p.slot())
	}
	if p.step == p.steps {
		p.from.finish(p.worker, p.chunk)
	}
}

// fill loads the next step of the chunk.
func (p *pipeline[D]) fill(b *loaded[D]) {
	p.trainer(p.chunk).Load(&b.Batch, At{Epoch: p.chunk.Epoch, Chunk: p.chunk.Chunk, Step: p.step, Progress: p.progress()})
	b.chunk, b.step = p.chunk, p.step
	p.step++
	b.last = p.step == p.steps
}

func (p *pipeline[D]) progress() float64 {
	part := float64(p.step) / float64(p.steps)
	if p.nodes == 0 {
		return (float64(p.chunk.Stage()) + part) / float64(max(p.chunk.Stages, 1))
	}
	return schedule.Progress(p.chunks, p.chunk.Chunk, p.nodes, part)
}

// announce signals the intents of the next batch that is not announced yet.
func (p *pipeline[D]) announce(b *loaded[D]) (err error) {
	start := p.w.Clock() + godwit.Clock(p.ready)
	if err := p.w.Intent(b.Keys, start, start+1); err != nil {
		return err
	}
	if b.Samples > 0 {
		if w, ok := p.w.(godwit.Seeder); ok {
			seed1, seed2 := At{Epoch: b.chunk.Epoch, Chunk: b.chunk.Chunk, Step: b.step}.Seed(0)
			w.SeedSample(b.Sampler, seed1, seed2)
		}
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
func (p *pipeline[D]) slot() *loaded[D] {
	if p.n == len(p.ring) {
		// Rotate the ring so that it starts at 0 and ends with the new batch.
		ring := make([]*loaded[D], 0, len(p.ring)+1)
		ring = append(ring, p.ring[p.first:]...)
		ring = append(ring, p.ring[:p.first]...)
		p.ring, p.first = append(ring, new(loaded[D])), 0
	}
	return p.ring[(p.first+p.n)%len(p.ring)]
}

// done returns the batch that next returned, which is trained, and advances the clock.
func (p *pipeline[D]) done(l Loss) {
	b := p.ring[p.first]
	held := 0
	if f, ok := p.trainer(b.chunk).(Flusher); ok {
		held = f.Held()
	}
	p.rec.trained(heldStep{b.chunk, b.step, b.last, l}, held)
	if b.last {
		p.from.finish(p.worker, b.chunk)
	}
	p.drop()
	p.w.Advance()
}

func (p *pipeline[D]) drop() {
	b := &p.ring[p.first].Batch
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
	var err error
	for t := range p.trainers {
		if c, ok := t.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// own gives each worker one chunk an epoch, or one a stage: its own part. Parts of an epoch that another number of workers has
// begun are dealt out.
type own struct {
	at     schedule.Position
	stages func(parts int) int
	next   []turn    // by worker: what it gets next, unless that is finished
	last   int       // epoch of the run
	part   Partition // of the node's first worker
}

// A turn is a part of a stage of an epoch.
type turn struct{ epoch, stage, part int }

func newOwn(workers, last int, part Partition, at schedule.Position, stages func(parts int) int) *own {
	o := &own{at: at, stages: stages, next: make([]turn, workers), last: last, part: part}
	for i := range o.next {
		o.next[i] = turn{epoch: max(1, at.First), part: part.Index + i}
	}
	return o
}

// span returns the stages of an epoch, of which the first have begun already.
func (o *own) span(epoch int) (begun, stages int) {
	e := o.at.Of(epoch)
	parts, _ := o.parts(&e)
	return e.Stage(), o.stages(parts)
}

// parts returns into how many parts an epoch divides the data, and of how many nodes.
func (o *own) parts(e *schedule.Epoch) (parts, nodes int) {
	if e.Parts > 0 {
		return e.Parts, e.Nodes
	}
	return o.part.Count, o.part.Nodes
}

func (o *own) take(_ context.Context, worker, _ int, _ bool) (c schedule.Chunk, ok bool, err error) {
	for t := &o.next[worker]; t.epoch <= o.last; {
		e := o.at.Of(t.epoch)
		parts, nodes := o.parts(&e)
		stages := o.stages(parts)
		switch {
		case t.stage >= max(stages, 1):
			*t = turn{epoch: t.epoch + 1, part: o.part.Index + worker}
			continue
		case t.stage < e.Stage() || t.part >= parts:
			t.stage, t.part = t.stage+1, o.part.Index+worker
			continue
		}
		c = schedule.Chunk{Epoch: t.epoch, Chunk: t.stage*parts + t.part, Parts: parts, Nodes: nodes, Stages: stages}
		t.part += o.part.Count
		if !e.Has(c.Chunk) {
			c.Skip = e.Steps(c.Chunk)
			return c, true, nil
		}
	}
	return schedule.Chunk{}, false, nil
}

func (o *own) finish(int, schedule.Chunk) {}
