package experiment

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/protocol/placement"
	"github.com/godwit-ps/godwit/train"
)

// Calibrate measures a training step on a real node with one worker: the time
// of an epoch by its steps, less what the model takes for the accesses. It
// holds loading and announcing batches too. Of three epochs the fastest counts,
// which other work on the machine disturbed least.
func Calibrate(ctx context.Context, l Lab) (step time.Duration, err error) {
	w, err := l.work(l.Graph.Exponent)
	if err != nil {
		return 0, err
	}
	return l.calibrate(ctx, w)
}

func (l *Lab) calibrate(ctx context.Context, w *work) (step time.Duration, err error) {
	c, err := node.Local(ctx, 1, node.Config{Model: w.model, Policy: placement.Adaptive, Seed: l.Seed, Samplers: w.samplers, Workers: 1})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	n := c.Nodes[0]
	env := train.Env{Workers: n.Workers()}
	t := task{w.task, true}
	best, last, before := time.Duration(0), time.Now(), n.Stats()
	var accesses uint64
	env.Progress = func(e train.Event) {
		now, s := time.Now(), n.Stats()
		if took := now.Sub(last); e.Loss != nil && (best == 0 || took < best) {
			best, accesses = took, s.Accesses()-before.Accesses()
		}
		last, before = now, s
	}
	if _, err := train.Run(ctx, env, t, train.Options{Epochs: 3}); err != nil {
		return 0, err
	}
	tr, err := w.task.Trainer(env.Workers[0], train.Part{Of: 1})
	if err != nil {
		return 0, err
	}
	steps := time.Duration(max(tr.Steps(), 1))
	return max((best-time.Duration(accesses)*l.Compute().Key)/steps, time.Microsecond).Round(100 * time.Nanosecond), nil
}
