package experiment

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/train"
)

// calibrate measures a training step on a real node with one worker: the time
// of an epoch by its steps, less what the model takes for the accesses. It
// holds loading and announcing batches too. Of three epochs the fastest counts,
// which other work on the machine disturbed least.
func (l *Lab) calibrate(ctx context.Context, w *work) (step time.Duration, err error) {
	c, err := node.Local(ctx, 1, node.Config{Model: w.model, Policy: placement.Adaptive, Seed: l.Seed, Samplers: w.samplers, Workers: 1})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	n := c.Nodes[0]
	env := train.Env{Workers: n.Workers()}
	best, last, before := time.Duration(0), time.Now(), n.Stats()
	var accesses uint64
	env.Progress = func(e train.Event) {
		now, s := time.Now(), n.Stats()
		if took := now.Sub(last); e.Loss != nil && (best == 0 || took < best) {
			best, accesses = took, s.Accesses()-before.Accesses()
		}
		last, before = now, s
	}
	const epochs = 3
	if _, err := w.task.Train(ctx, env, train.Options{Epochs: epochs}, new(atomic.Int64)); err != nil {
		return 0, err
	}
	steps := max(time.Duration(n.Worker(0).Clock())/epochs, 1) // the clock ticks once a step
	return max((best-time.Duration(accesses)*l.Compute().Key)/steps, time.Microsecond).Round(100 * time.Nanosecond), nil
}
