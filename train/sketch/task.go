package sketch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/tables"

	"github.com/godwit-ps/godwit/data/setting"
)

// A Config holds the settings of a [Task]. Start from [DefaultConfig]; the zero
// Config is not valid.
type Config struct {
	Sketch
	// Batch is the number of items that a step adds, 1 … 2^20; 0 is a 128th of all, from 1,000 to 8,000.
	Batch int
}

// DefaultConfig returns a sketch of 4 rows of 65,536 cells.
func DefaultConfig() Config { return Config{Sketch: Sketch{Depth: 4, Width: 1 << 16, Seed: 1}} }

const maxBatch = 1 << 20

// LeastBatch is how many items a step has at least where [Config].Batch is 0.
const LeastBatch = 1000

// batch is the number of items of a step of so many in all. A step of 1,000 costs a tenth more an item than one of 8,000.
func (c Config) batch(items int) int {
	if c.Batch > 0 {
		return c.Batch
	}
	return min(max(items/128, LeastBatch), 8000)
}

// Check returns what is wrong with the settings.
func (c Config) Check() error {
	if c.Batch < 0 || c.Batch > maxBatch {
		return setting.Bad("sketch.Config", "Batch", c.Batch, fmt.Sprintf("1 … %d items, or 0", maxBatch))
	}
	return c.Sketch.Check()
}

// A Task counts a stream once an epoch. It implements [train.Task]. It may be used by
// any number of goroutines.
type Task struct {
	cfg    Config
	stream *Stream
	batch  int      // items of a step
	items  []uint64 // different ones, and
	counts []int64  // how often each occurs, for evaluations
	// before is how many items were counted by the sketch that was taken over; 0 without one.
	before   atomic.Int64
	beforeAt atomic.Int64 // the node that took it over
}

// New checks the settings and the stream, which must not change afterwards.
func New(cfg Config, s *Stream) (*Task, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if len(s.Items) == 0 {
		return nil, errors.New("sketch: the stream has no items")
	}
	t := &Task{cfg: cfg, stream: s, batch: cfg.batch(len(s.Items))}
	t.items, t.counts = s.counts()
	return t, nil
}

// Distinct returns the number of different items.
func (t *Task) Distinct() int { return len(t.items) }

// Tables describes the table that the task adds to, for [godwit.NewModel]. The
// model may have other tables beside.
func (t *Task) Tables() []godwit.Table { return []godwit.Table{t.cfg.Table()} }

// Fingerprint names settings and stream.
func (t *Task) Fingerprint() string {
	return fmt.Sprintf("sketch %+v by multiply-shift of %d items (%s)", t.cfg, len(t.stream.Items), t.stream.Fingerprint())
}

// A Batch is the task's part of a [train.Batch]: where items are in the stream.
type Batch struct{ from, to int }

// A trainer adds one worker's chunks: stretches of the stream. It belongs to one goroutine.
type trainer struct {
	task   *Task
	client *Client
}

// steps is the number of batches of an epoch.
func (t *Task) steps() int { return (len(t.stream.Items) + t.batch - 1) / t.batch }

// Chunks implements [train.Task].
func (t *Task) Chunks() int {
	n, _ := schedule.Cut(t.steps())
	return n
}

// Trainer returns a worker's trainer.
func (t *Task) Trainer(w godwit.Worker, _ train.Partition) (train.Trainer[Batch], error) {
	c, err := t.cfg.On(w)
	return &trainer{t, c}, err
}

// Steps, Load and Step implement [train.Trainer].
func (t *trainer) Steps(_, chunk int) int { return schedule.Steps(t.task.steps(), chunk) }

// Load announces no cells: nothing is read, and moving a cell here costs more than one
// push to it. Replicas of the hottest cells were tried, announced and learned: on busy
// processors, the sync rounds that refreshed them took three times as long as the pushes.
// What the client gathers combines pushes to the same cell at no cost.
func (t *trainer) Load(b *train.Batch[Batch], at train.At) {
	_, per := schedule.Cut(t.task.steps())
	from := (at.Chunk*per + at.Step) * t.task.batch
	b.Data = Batch{from, min(from+t.task.batch, len(t.task.stream.Items))}
}

// Step adds the batch's items. A sketch has no loss: Step returns 0.
func (t *trainer) Step(ctx context.Context, b *train.Batch[Batch]) (train.Loss, error) {
	items := t.task.stream.Items[b.Data.from:b.Data.to]
	err := t.client.Add(ctx, items)
	return train.Loss{Examples: int64(len(items))}, err
}

// Flush implements [train.Flusher]: an epoch ends when its items are counted.
func (t *trainer) Flush(ctx context.Context) error { return t.client.Flush(ctx) }

// Held implements [train.Flusher].
func (t *trainer) Held() int { return t.client.held }

// A Quality is the result of an evaluation of a sketch.
type Quality struct {
	// Total is how many items were added.
	Total int64
	// Streams is Total, without what a sketch that was taken over had counted, divided by
	// the length of the stream.
	Streams float64
	// Items is how many different items were asked for.
	Items int64
	// Excess is by how much their estimates exceed their counts, in the mean.
	Excess float64
	// Most is by how much an estimate exceeds its count at the most.
	Most int64
	// Within is the share that does not exceed it by more than [Sketch.Bound].
	Within float64
	// TooSmall is how many estimates are smaller than the count, and Torn how many rows
	// of the sketch have another total than the first. Both are 0 if whole streams were
	// counted.
	TooSmall, Torn int64
}

// EvaluateOn asks for the count of every step-th different item and compares it with
// the stream. All workers of all nodes divide the items among them. All nodes
// call it, each time with another name, when the updates of all workers are
// visible everywhere.
func (t *Task) EvaluateOn(ctx context.Context, env *train.Env, name string, step int) (Quality, error) {
	totals, before, err := t.totals(ctx, env, name)
	if err != nil {
		return Quality{}, err
	}
	q := Quality{Total: totals[0], Streams: float64(totals[0]-before) / float64(len(t.stream.Items))}
	for _, n := range totals {
		if n != q.Total {
			q.Torn++
		}
	}
	mosts := make([]int64, len(env.Workers))
	sum, err := env.SumOverWorkers(ctx, "sketch "+name, 4, func(ctx context.Context, i int, w godwit.Worker, sums []float64) error {
		c, err := t.cfg.On(w)
		if err != nil {
			return err
		}
		from, to := env.Share((len(t.items)+step-1)/step, i)
		var f found
		err = t.ask(ctx, c, &f, step, from, to, q.Streams, t.cfg.Bound(q.Total))
		sums[0], sums[1], sums[2], sums[3] = float64(f.items), f.excess, float64(f.within), float64(f.small)
		mosts[i] = f.most
		return err
	})
	if err != nil {
		return Quality{}, err
	}
	// The largest of all nodes, by sums: each node's own in its own place.
	most := make([]float64, max(env.Nodes, 1))
	most[env.Node] = float64(slices.Max(mosts))
	if most, err = env.Sum(ctx, "sketch most "+name, most...); err != nil {
		return Quality{}, err
	}
	n := max(sum[0], 1)
	q.Items, q.Excess, q.Within, q.TooSmall = int64(sum[0]), sum[1]/n, sum[2]/n, int64(sum[3])
	for _, x := range most {
		q.Most = max(q.Most, int64(x))
	}
	return q, nil
}

// found is the result of one worker.
type found struct {
	items, within, small, most int64
	excess                     float64
}

// asked is how many items are asked for at once.
const asked = 1024

// ask asks for every step-th item from the from-th to the to-th of these.
func (t *Task) ask(ctx context.Context, c *Client, f *found, step, from, to int, times, bound float64) error {
	items, dst := make([]uint64, 0, asked), make([]int64, asked)
	for ; from < to; from += asked {
		items = items[:0]
		for i := from; i < min(from+asked, to); i++ {
			items = append(items, t.items[i*step])
		}
		if err := c.Estimate(ctx, items, dst[:len(items)]); err != nil {
			return err
		}
		for i := range items {
			excess := float64(dst[i]) - times*float64(t.counts[(from+i)*step])
			f.items++
			f.excess += excess
			f.most = max(f.most, int64(excess))
			if excess <= bound {
				f.within++
			}
			if excess < 0 {
				f.small++
			}
		}
	}
	return nil
}

// totals adds up the rows of the sketch. Each is the number of items added, so many of
// them before this run.
func (t *Task) totals(ctx context.Context, env *train.Env, name string) (totals []int64, before int64, err error) {
	all, err := env.SumOverWorkers(ctx, "sketch totals "+name, t.cfg.Depth+1, func(ctx context.Context, i int, w godwit.Worker, sums []float64) error {
		c, err := t.cfg.On(w)
		if err != nil {
			return err
		}
		if i == 0 && int64(env.Node) == t.beforeAt.Load() {
			sums[t.cfg.Depth] = float64(t.before.Load())
		}
		from, to := env.Share(t.cfg.Width, i)
		for row := range t.cfg.Depth {
			n, err := c.total(ctx, row, from, to)
			if err != nil {
				return err
			}
			sums[row] = float64(n)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	totals = make([]int64, t.cfg.Depth)
	for row := range totals {
		totals[row] = int64(all[row]) // sums of whole numbers below 2^53 are exact
	}
	return totals, int64(all[t.cfg.Depth]), nil
}

// Evaluate asks for some of the items and warns of counts that are wrong.
func (t *Task) Evaluate(ctx context.Context, env *train.Env, epoch int) (train.Evaluation, error) {
	q, err := t.EvaluateOn(ctx, env, fmt.Sprintf("after epoch %d", epoch), 1+len(t.items)/evaluated)
	if err != nil {
		return train.Evaluation{}, err
	}
	ev := train.Evaluation{LowerIsBetter: true, Metrics: q.Metrics()}
	if q.Torn > 0 {
		ev.Warnings = append(ev.Warnings, fmt.Sprintf("%d rows of the sketch have another total than the first, %d", q.Torn, q.Total))
	}
	if q.TooSmall > 0 && q.Streams == float64(int64(q.Streams)) {
		ev.Warnings = append(ev.Warnings, fmt.Sprintf("%d of %d estimates are too small", q.TooSmall, q.Items))
	}
	return ev, nil
}

// evaluated is how many items an evaluation asks for, about.
const evaluated = 10_000

// Metrics are the figures of a result.
func (q Quality) Metrics() []train.Metric {
	return []train.Metric{
		{Name: "mean excess", Value: q.Excess}, {Name: "most", Value: float64(q.Most)}, {Name: "within bound", Value: q.Within}, {Name: "too small", Value: float64(q.TooSmall)},
	}
}

// score says how counts follow from exported cells. Sketches whose items have other cells differ in it.
func (t *Task) score() string {
	mix := "h = (h ^ h >> 30)*0xbf58476d1ce4e5b9; h = (h ^ h >> 27)*0x94d049bb133111eb; h ^= h >> 31"
	return fmt.Sprintf("count = cells[:, 0] + %d*cells[:, 1]; an item's estimate is the least of its cells in the %d rows; "+
		"mix(h): %s; its cell in row r: h = mix(item ^ %d*0x9e3779b97f4a7c15) * (mix((%d + r + 1)*0x9e3779b97f4a7c15) | 1); "+
		"r*%d + ((h >> 32)*%d >> 32), all mod 2**64; a word is the item FNV-1a, 64 bits, of its bytes",
		optim.CounterBase, t.cfg.Depth, mix, t.cfg.Seed, t.cfg.Seed, t.cfg.Width, t.cfg.Width)
}

// CountFile is the file that [Task.Export] writes.
const CountFile = "cells.npy"

// Export writes the cells as a NumPy array of float32: a row for each cell of the
// first row of the sketch, then of the second, and so on, with the low and high part
// of its count ([optim.Count]).
//
// One node of the run calls it, with a worker that nothing else uses meanwhile, after
// [train.Run].
func (t *Task) Export(ctx context.Context, w godwit.Worker, s *export.Set) error {
	c, err := t.cfg.On(w)
	if err != nil {
		return err
	}
	s.Model.Model = "count-min sketch"
	s.Model.Score = t.score()
	cells := tables.Array{
		File: CountFile, Layout: fmt.Sprintf("low and high part of the count of a cell; x.reshape(%d, %d, 2) is the sketch", t.cfg.Depth, t.cfg.Width),
		First: c.first, Rows: t.cfg.cells(), Dim: 2 * t.cfg.perKey(), Cols: 2, Per: t.cfg.perKey(),
	}
	if err := cells.Write(ctx, w, s); err != nil {
		return fmt.Errorf("sketch: export: %w", err)
	}
	return nil
}
