package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/godwit-ps/godwit"
	usual "github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
)

// A Compute says what computing costs, in virtual time. Measure Step on one
// real node: the time of a training step less what else is charged for it. Where
// neither steps nor accesses take time, a worker that finds all its keys at its
// node goes through its whole program in one moment.
type Compute struct {
	// Step is what a worker computes between the reads and the writes of a step
	// (from one Advance to the next), and Spread how much it varies: by up to
	// that share of it up and down.
	Step   time.Duration
	Spread float64 // 0 … 1
	// Key is a worker's access to one key, wherever it is, and a key that it asks to move here.
	Key time.Duration
	// Byte is its access to a byte of the value, in nanoseconds.
	Byte float64
	// Announce is a key that a worker announces, by an Intent or for a sample of the
	// scheme "prepared"; one node alone does nothing about it. Load is the loading of
	// a batch, for each key of its Intent, and Sample drawing a sample.
	Announce, Load, Sample time.Duration
	// Plan is a key whose intent the planner begins or ends, and Want what it costs
	// beside that under a policy that acts on intents. Where both are 0, it is Round.
	Plan, Want time.Duration
	// Send is what the sender of a frame spends on it, Frame the server that it
	// arrives at, and Record that server on each of its records.
	Send, Frame, Record time.Duration
	// FrameByte is what each of both spends on a byte of the frame, in nanoseconds.
	FrameByte float64
	// Round is what a sync round spends on each key that it begins, ends or sends.
	// Rounds take a bounded share of the time, so this decides how fresh replicas
	// are.
	Round time.Duration
	// Cores, if set, is how many cores a node has, for its workers and for
	// everything that it does beside them. Who wants a core takes the one that is
	// free first.
	Cores int
	// Slice is how long one computes before others may take a turn at its core; 0 is
	// 10 ms, as the scheduler of Go has it.
	Slice time.Duration
	// Machine has all nodes share the Cores, as processes of one machine do.
	Machine bool
	// Slow says how many times as long computing takes at a node, by its number; 1 at nodes
	// that are not in it.
	Slow map[int]float64
	// Servers is for Cores 0, where each worker has a core of its own: how many
	// others do the work of the server; 0 is 2.
	Servers int
}

func (c *Compute) check() error {
	switch {
	case !finite(c.Byte) || !finite(c.FrameByte):
		return fmt.Errorf("sim: a byte of a value costs %v ns and one of a frame %v, want finite numbers", c.Byte, c.FrameByte)
	case min(c.Step, c.Key, c.Announce, c.Plan, c.Want, c.Load, c.Sample, c.Send, c.Frame, c.Record, c.Round, c.Slice) < 0 || min(c.Byte, c.FrameByte) < 0:
		return fmt.Errorf("sim: computing takes negative time: %+v", *c)
	case slices.ContainsFunc(slices.Collect(maps.Values(c.Slow)), func(x float64) bool { return !(x > 0) || !finite(x) }):
		return fmt.Errorf("sim: computing takes %v times as long, want finite numbers above 0", c.Slow)
	case !(c.Spread >= 0 && c.Spread <= 1):
		return fmt.Errorf("sim: steps vary by a share of %v, want 0 … 1", c.Spread)
	case c.Servers < 0 || c.Servers > 1<<10:
		return fmt.Errorf("sim: %d server cores a node, want 0 (2) … %d", c.Servers, 1<<10)
	case c.Cores < 0 || c.Cores > 1<<10:
		return fmt.Errorf("sim: %d cores a node, want 0 (one a worker, beside those of the server) … %d", c.Cores, 1<<10)
	case c.Cores > 0 && c.Servers > 0:
		return fmt.Errorf("sim: %d cores a node and %d for the server alone: give one of them", c.Cores, c.Servers)
	case c.Machine && c.Cores == 0:
		return errors.New("sim: a machine that all nodes share, without a number of cores")
	}
	return nil
}

// finite reports whether x is a number, and not an infinite one.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// cores returns when each core is free that a node's server uses: now.
func (c *Compute) cores() []int64 {
	switch {
	case c.Cores > 0:
		return make([]int64, c.Cores)
	case c.Servers > 0:
		return make([]int64, c.Servers)
	}
	return make([]int64, 2)
}

// slice is for how long a worker computes at a time, in nanoseconds.
func (c *Compute) slice() int64 {
	if c.Slice > 0 {
		return int64(c.Slice)
	}
	return int64(10 * time.Millisecond)
}

// slowed is how long a cost takes at the node.
func (h *host) slowed(cost int64) int64 {
	if h.slow > 0 {
		return int64(h.slow * float64(cost))
	}
	return cost
}

// free returns how many cores are free.
func (h *host) free(now int64) (cores int) {
	for _, at := range h.cores {
		if at <= now {
			cores++
		}
	}
	return cores
}

// serve takes the core that is free first, from begin on, and returns
// when it is done.
func (h *host) serve(begin, cost int64) int64 {
	cost = h.slowed(cost)
	first := 0
	for i := range h.cores {
		if h.cores[i] < h.cores[first] {
			first = i
		}
	}
	end := max(begin, h.cores[first]) + cost
	h.cores[first] = end
	h.computed += cost
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

// access notes accesses to keys with so many floats, before they happen.
func (w *worker) access(keys, floats int) {
	c := &w.c.cfg.Compute
	w.owe(int64(keys)*int64(c.Key) + int64(c.Byte*float64(4*floats)))
}

// owe notes that a call costs something.
func (w *worker) owe(cost int64) {
	if w.debt += cost; w.debt >= small {
		w.pay()
	}
}

// Intent and PrepareSample cost what announcing and loading cost. Time passes with
// the next access: what is announced is not to wait for what is announced after it.
func (w *worker) Intent(keys []godwit.Key, start, end godwit.Clock) error {
	w.debt += int64(len(keys))*int64(w.c.cfg.Compute.Load) + w.announcing(len(keys))
	return w.Worker.Intent(keys, start, end)
}

func (w *worker) PrepareSample(sampler, n int, start, end godwit.Clock) (godwit.SampleID, error) {
	id, err := w.Worker.PrepareSample(sampler, n, start, end)
	if err != nil {
		return id, err
	}
	w.debt += int64(n) * int64(w.c.cfg.Compute.Sample)
	if _, ok := w.c.cfg.Samplers[sampler].Scheme.(sampling.Prepared); ok {
		w.debt += w.announcing(n)
	}
	return id, nil
}

// SeedSample implements [godwit.Seeder].
func (w *worker) SeedSample(sampler int, seed1, seed2 uint64) {
	if s, ok := w.Worker.(godwit.Seeder); ok {
		s.SeedSample(sampler, seed1, seed2)
	}
}

// Await, AwaitAhead, InOrder and Unhindered implement [godwit.Awaiter].
func (w *worker) Await(ctx context.Context, h godwit.Handle) (bool, error) {
	over, err := w.Worker.(godwit.Awaiter).Await(ctx, h)
	return over, w.explain(err)
}

func (w *worker) AwaitAhead(ctx context.Context) (bool, error) {
	came, err := w.Worker.(godwit.Awaiter).AwaitAhead(ctx)
	return came, w.explain(err)
}

func (w *worker) InOrder() bool { return w.Worker.(godwit.Awaiter).InOrder() }

func (w *worker) Unhindered(keys int) bool { return w.Worker.(godwit.Awaiter).Unhindered(keys) }

// announcing is what it costs to announce keys. A node that is alone does nothing
// for it.
func (w *worker) announcing(keys int) int64 {
	if len(w.c.hosts) == 1 {
		return 0
	}
	return int64(keys) * int64(w.c.cfg.Compute.Announce)
}

// keyOf is what a node's round or planner spends on a key.
func (c *Config) keyOf(d usual.Duty) int64 {
	k := &c.Compute
	switch p := c.Policy; {
	case d == usual.Rounds || k.Plan+k.Want == 0:
		return int64(k.Round)
	case p == nil || p.OnIntent(false) != placement.Nothing || p.OnIntent(true) != placement.Nothing:
		return int64(k.Plan + k.Want)
	}
	return int64(k.Plan)
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

// pay lets the time pass that the worker owes: on a core of its own, or on those
// that it shares with all that the node does.
func (w *worker) pay() {
	if w.debt <= 0 {
		return
	}
	d := w.debt
	w.debt = 0
	c := &w.c.cfg.Compute
	if c.Cores == 0 {
		d = w.h.slowed(d)
		w.h.computed += d
		w.c.park(w.h, time.Duration(d), [3]<-chan struct{}{})
		return
	}
	for d > 0 {
		part := min(d, c.slice())
		d -= part
		w.c.park(w.h, time.Duration(w.h.serve(w.c.now, part)-w.c.now), [3]<-chan struct{}{})
	}
}

func (w *worker) Pull(ctx context.Context, keys []godwit.Key, dst []float32) error {
	w.access(len(keys), len(dst))
	return w.explain(w.Worker.Pull(ctx, keys, dst))
}

func (w *worker) PullAsync(ctx context.Context, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	w.access(len(keys), len(dst))
	h, err := w.Worker.PullAsync(ctx, keys, dst)
	return h, w.explain(err)
}

func (w *worker) PullAfter(ctx context.Context, after godwit.Clock, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	w.access(len(keys), len(dst))
	return w.Worker.PullAfter(ctx, after, keys, dst)
}

func (w *worker) PullIfLocal(k godwit.Key, dst []float32) bool {
	w.access(1, len(dst))
	return w.Worker.PullIfLocal(k, dst)
}

func (w *worker) PullSample(ctx context.Context, id godwit.SampleID, keys []godwit.Key, dst []float32) error {
	w.access(len(keys), len(dst))
	return w.explain(w.Worker.PullSample(ctx, id, keys, dst))
}

func (w *worker) Push(ctx context.Context, keys []godwit.Key, push []float32) error {
	w.compute()
	w.access(len(keys), len(push))
	return w.explain(w.Worker.Push(ctx, keys, push))
}

func (w *worker) PushAsync(ctx context.Context, keys []godwit.Key, push []float32) (godwit.Handle, error) {
	w.compute()
	w.access(len(keys), len(push))
	h, err := w.Worker.PushAsync(ctx, keys, push)
	return h, w.explain(err)
}

func (w *worker) Set(ctx context.Context, keys []godwit.Key, vals []float32) error {
	w.compute()
	w.access(len(keys), len(vals))
	return w.explain(w.Worker.Set(ctx, keys, vals))
}

func (w *worker) SetAsync(ctx context.Context, keys []godwit.Key, vals []float32) (godwit.Handle, error) {
	w.compute()
	w.access(len(keys), len(vals))
	h, err := w.Worker.SetAsync(ctx, keys, vals)
	return h, w.explain(err)
}

// explain keeps what a worker waited for when the cluster stands still.
func (w *worker) explain(err error) error {
	if err != nil && w.c.stalled {
		w.c.waits = append(w.c.waits, err)
	}
	return err
}

func (w *worker) Wait(ctx context.Context, hs ...godwit.Handle) error {
	return w.explain(w.Worker.Wait(ctx, hs...))
}

func (w *worker) Localize(ctx context.Context, keys []godwit.Key) error {
	w.access(len(keys), 0)
	return w.explain(w.Worker.Localize(ctx, keys))
}

func (w *worker) LocalizeAsync(ctx context.Context, keys []godwit.Key) (godwit.Handle, error) {
	w.access(len(keys), 0)
	h, err := w.Worker.LocalizeAsync(ctx, keys)
	return h, w.explain(err)
}

// WaitSync takes a moment also where there are no other nodes to hear from: a
// program may wait for what this node's other workers do.
func (w *worker) WaitSync(ctx context.Context) error {
	if len(w.c.hosts) == 1 {
		w.c.park(w.h, time.Microsecond, [3]<-chan struct{}{})
	}
	return w.explain(w.Worker.WaitSync(ctx))
}
func (w *worker) SyncAll(ctx context.Context) error { return w.explain(w.Worker.SyncAll(ctx)) }
func (w *worker) Barrier(ctx context.Context) error { return w.explain(w.Worker.Barrier(ctx)) }

func (w *worker) Scan(ctx context.Context, first, end godwit.Key, home godwit.NodeID) iter.Seq2[godwit.Key, error] {
	return func(yield func(godwit.Key, error) bool) {
		for k, err := range w.Worker.Scan(ctx, first, end, home) {
			if !yield(k, w.explain(err)) {
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
