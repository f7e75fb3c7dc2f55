package experiment

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
	"github.com/godwit-ps/godwit/train"
)

// calibrate measures a training step on a real node with one worker.
func (l *Lab) calibrate(ctx context.Context, w *work) (time.Duration, error) {
	epoch, steps, err := l.epoch(ctx, w)
	if err != nil {
		return 0, err
	}
	return max(epoch/time.Duration(max(steps, 1)), time.Microsecond).Round(100 * time.Nanosecond), nil
}

// epoch measures what the steps of an epoch compute on a real node with one worker: the
// processor time of the epoch, less what the lab's costs charge for accesses, for
// loading and for samples; a node that is alone announces for nothing. So a simulated node and a real one take as much
// for an epoch. Of three epochs the one counts that took least, which other work on
// the machine disturbed least.
func (l *Lab) epoch(ctx context.Context, w *work) (took time.Duration, steps int, err error) {
	c, err := node.Local(ctx, 1, node.Config{Model: w.model, Policy: placement.Adaptive, Seed: l.Seed, Samplers: w.samplers, Workers: 1})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	n := c.Nodes[0]
	w0 := &counter{inner: inner{n.Worker(0)}}
	env := train.Env{Workers: []godwit.Worker{w0}}
	best, last := time.Duration(0), host.ProcessorTime()
	compute := l.Compute(1)
	env.Progress = func(e train.Event) {
		now := host.ProcessorTime()
		if took := now - last - w0.cost(&compute); e.Loss != nil && (best == 0 || took < best) {
			best = took
		}
		*w0, last = counter{inner: w0.inner}, now
	}
	const epochs = 3
	if _, err := w.task.Train(ctx, env, train.Options{Epochs: epochs}, new(atomic.Int64)); err != nil {
		return 0, 0, err
	}
	return best, int(n.Worker(0).Clock()) / epochs, nil // the clock ticks once a step
}

// steps is how many steps an epoch has, of all of so many workers together: where a
// worker's part of the data is smaller than a batch, there are more than with one.
func (l *Lab) steps(ctx context.Context, w *work, workers int) (steps int, err error) {
	c, err := sim.New(sim.Config{Nodes: 1, Workers: workers, Seed: l.Seed, Model: w.model, Policy: placement.Static, Samplers: w.samplers,
		Compute: sim.Compute{Step: time.Microsecond}})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	_, err = c.RunNodes(ctx, func(ctx context.Context, env train.Env) error {
		env.Progress = func(e train.Event) {
			if e.Loss == nil {
				return
			}
			for _, w := range env.Workers {
				steps += int(w.Clock())
			}
		}
		_, err := w.task.Train(ctx, env, train.Options{Epochs: 1}, new(atomic.Int64))
		return err
	})
	return steps, err
}

// A counter counts what a worker is asked for.
type counter struct {
	inner
	keys, floats, announced, samples int
}

// cost is what a simulated node is charged for what was counted.
func (c *counter) cost(k *sim.Compute) time.Duration {
	return time.Duration(c.keys)*k.Key + time.Duration(k.Byte*float64(4*c.floats)) +
		time.Duration(c.announced)*k.Load + time.Duration(c.samples)*k.Sample
}

func (c *counter) access(keys, floats int) { c.keys, c.floats = c.keys+keys, c.floats+floats }

func (c *counter) Pull(ctx context.Context, keys []godwit.Key, dst []float32) error {
	c.access(len(keys), len(dst))
	return c.Worker.Pull(ctx, keys, dst)
}

func (c *counter) PullAsync(ctx context.Context, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	c.access(len(keys), len(dst))
	return c.Worker.PullAsync(ctx, keys, dst)
}

func (c *counter) PullIfLocal(k godwit.Key, dst []float32) bool {
	c.access(1, len(dst))
	return c.Worker.PullIfLocal(k, dst)
}

func (c *counter) PullSample(ctx context.Context, id godwit.SampleID, keys []godwit.Key, dst []float32) error {
	c.access(len(keys), len(dst))
	return c.Worker.PullSample(ctx, id, keys, dst)
}

func (c *counter) Push(ctx context.Context, keys []godwit.Key, push []float32) error {
	c.access(len(keys), len(push))
	return c.Worker.Push(ctx, keys, push)
}

func (c *counter) PushAsync(ctx context.Context, keys []godwit.Key, push []float32) (godwit.Handle, error) {
	c.access(len(keys), len(push))
	return c.Worker.PushAsync(ctx, keys, push)
}

func (c *counter) Set(ctx context.Context, keys []godwit.Key, vals []float32) error {
	c.access(len(keys), len(vals))
	return c.Worker.Set(ctx, keys, vals)
}

func (c *counter) SetAsync(ctx context.Context, keys []godwit.Key, vals []float32) (godwit.Handle, error) {
	c.access(len(keys), len(vals))
	return c.Worker.SetAsync(ctx, keys, vals)
}

func (c *counter) Localize(ctx context.Context, keys []godwit.Key) error {
	c.access(len(keys), 0)
	return c.Worker.Localize(ctx, keys)
}

func (c *counter) LocalizeAsync(ctx context.Context, keys []godwit.Key) (godwit.Handle, error) {
	c.access(len(keys), 0)
	return c.Worker.LocalizeAsync(ctx, keys)
}

func (c *counter) Intent(keys []godwit.Key, start, end godwit.Clock) error {
	c.announced += len(keys)
	return c.Worker.Intent(keys, start, end)
}

func (c *counter) PrepareSample(sampler, n int, start, end godwit.Clock) (godwit.SampleID, error) {
	c.samples += n
	return c.Worker.PrepareSample(sampler, n, start, end)
}
