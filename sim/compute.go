package sim

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/godwit-ps/godwit"
)

// A Compute says what computing costs, in virtual time. Measure Step on one
// real node: the time of a training step less Key times the keys that it
// accesses. Where neither steps nor accesses take time, a worker that finds all
// its keys at its node goes through its whole program in one moment.
type Compute struct {
	// Step is what a worker computes between the reads and the writes of a step
	// (from one Advance to the next), and Spread how much it varies: by up to
	// that share of it up and down.
	Step   time.Duration
	Spread float64 // 0 … 1
	// Key is a worker's access to one key, wherever it is.
	Key time.Duration
	// Frame and Record are what the server spends on a frame that arrives and on
	// each of its records, and Round what a sync round spends on each key that it
	// begins, ends or sends. Rounds take a bounded share of the time, so this
	// decides how fresh replicas are.
	Frame, Record, Round time.Duration
	// Servers is how many cores of a node do that, beside one core for each
	// worker; 0 is 2.
	Servers int
}

func (c *Compute) check() error {
	switch {
	case c.Step < 0 || c.Key < 0 || c.Frame < 0 || c.Record < 0 || c.Round < 0:
		return fmt.Errorf("sim: computing takes negative time: step %v, key %v, frame %v, record %v, round %v", c.Step, c.Key, c.Frame, c.Record, c.Round)
	case c.Spread < 0 || c.Spread > 1:
		return fmt.Errorf("sim: steps vary by a share of %v, want 0 … 1", c.Spread)
	case c.Servers < 0 || c.Servers > 1<<10:
		return fmt.Errorf("sim: %d server cores a node, want 0 (2) … %d", c.Servers, 1<<10)
	}
	return nil
}

// serve takes the core of the server that is free first, from begin on, and
// returns when it is done.
func (h *host) serve(begin, cost int64) int64 {
	first := 0
	for i := range h.cores {
		if h.cores[i] < h.cores[first] {
			first = i
		}
	}
	end := max(begin, h.cores[first]) + cost
	h.cores[first] = end
	return end
}

// small costs are put together before time passes for them.
const small = int64(20 * time.Microsecond)

// A worker is a node's worker whose calls take time.
type worker struct {
	godwit.Worker
	c    *Cluster
	h    *host
	rng  *rand.Rand
	step bool  // the computation of this step was done
	debt int64 // nanoseconds that have not passed yet
}

// access notes accesses to keys, before they happen.
func (w *worker) access(keys int) {
	if w.debt += int64(keys) * int64(w.c.cfg.Compute.Key); w.debt >= small {
		w.pay()
	}
}

// compute lets the time of a step pass, once a step.
func (w *worker) compute() {
	if w.step {
		return
	}
	w.step = true
	d := float64(w.c.cfg.Compute.Step)
	if s := w.c.cfg.Compute.Spread; s > 0 {
		d *= 1 + s*(2*w.rng.Float64()-1)
	}
	w.debt += int64(d)
	w.pay()
}

func (w *worker) pay() {
	if w.debt > 0 {
		d := time.Duration(w.debt)
		w.debt = 0
		w.c.park(w.h, d, [3]<-chan struct{}{})
	}
}

func (w *worker) Pull(ctx context.Context, keys []godwit.Key, dst []float32) error {
	w.access(len(keys))
	return w.told(w.Worker.Pull(ctx, keys, dst))
}

func (w *worker) PullAsync(ctx context.Context, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	w.access(len(keys))
	h, err := w.Worker.PullAsync(ctx, keys, dst)
	return h, w.told(err)
}

func (w *worker) PullAfter(ctx context.Context, after godwit.Clock, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	w.access(len(keys))
	return w.Worker.PullAfter(ctx, after, keys, dst)
}

func (w *worker) PullIfLocal(k godwit.Key, dst []float32) bool {
	w.access(1)
	return w.Worker.PullIfLocal(k, dst)
}

func (w *worker) PullSample(ctx context.Context, id godwit.SampleID, keys []godwit.Key, dst []float32) error {
	w.access(len(keys))
	return w.told(w.Worker.PullSample(ctx, id, keys, dst))
}

func (w *worker) Push(ctx context.Context, keys []godwit.Key, push []float32) error {
	w.compute()
	w.access(len(keys))
	return w.told(w.Worker.Push(ctx, keys, push))
}

func (w *worker) PushAsync(ctx context.Context, keys []godwit.Key, push []float32) (godwit.Handle, error) {
	w.compute()
	w.access(len(keys))
	h, err := w.Worker.PushAsync(ctx, keys, push)
	return h, w.told(err)
}

func (w *worker) Set(ctx context.Context, keys []godwit.Key, vals []float32) error {
	w.compute()
	w.access(len(keys))
	return w.told(w.Worker.Set(ctx, keys, vals))
}

func (w *worker) SetAsync(ctx context.Context, keys []godwit.Key, vals []float32) (godwit.Handle, error) {
	w.compute()
	w.access(len(keys))
	h, err := w.Worker.SetAsync(ctx, keys, vals)
	return h, w.told(err)
}

// told keeps what a worker waited for when the cluster stands still.
func (w *worker) told(err error) error {
	if err != nil && w.c.still {
		w.c.waits = append(w.c.waits, err)
	}
	return err
}

func (w *worker) Wait(ctx context.Context, hs ...godwit.Handle) error {
	return w.told(w.Worker.Wait(ctx, hs...))
}

func (w *worker) Localize(ctx context.Context, keys []godwit.Key) error {
	return w.told(w.Worker.Localize(ctx, keys))
}

// WaitSync takes a moment also where there are no other nodes to hear from: a
// program may wait for what this node's other workers do.
func (w *worker) WaitSync(ctx context.Context) error {
	if len(w.c.hosts) == 1 {
		w.c.park(w.h, time.Microsecond, [3]<-chan struct{}{})
	}
	return w.told(w.Worker.WaitSync(ctx))
}
func (w *worker) Barrier(ctx context.Context) error { return w.told(w.Worker.Barrier(ctx)) }

func (w *worker) Scan(ctx context.Context, first, end godwit.Key, home godwit.NodeID) iter.Seq2[godwit.Key, error] {
	return func(yield func(godwit.Key, error) bool) {
		for k, err := range w.Worker.Scan(ctx, first, end, home) {
			if !yield(k, w.told(err)) {
				return
			}
		}
	}
}

// Advance ends a step. Other coroutines of the node get their turn when the
// time that it took has passed.
func (w *worker) Advance() godwit.Clock {
	w.compute()
	w.step = false
	return w.Worker.Advance()
}
