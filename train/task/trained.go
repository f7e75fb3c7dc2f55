package task

import (
	"context"
	"sync/atomic"

	"github.com/godwit-ps/godwit/train"
)

// Trained is what all tasks have in common: a [Task] embeds it.
type Trained[D any] struct {
	train.Task[D]
	// EvalWorkers is how many workers of a node evaluate the model between epochs;
	// 0: all.
	EvalWorkers int
}

// Warnings implements [Task]: there are none.
func (Trained[D]) Warnings() []string { return nil }

// Train implements [Task].
func (t Trained[D]) Train(ctx context.Context, env train.Env, o train.Options, seen *atomic.Int64) (*train.Report, error) {
	env.Seen = seen
	return train.Run(ctx, env, t, o)
}

// Evaluate implements [train.Task].
func (t Trained[D]) Evaluate(ctx context.Context, env *train.Env, epoch int) (train.Evaluation, error) {
	e := *env
	if t.EvalWorkers > 0 && t.EvalWorkers < len(e.Workers) {
		e.Workers = e.Workers[:t.EvalWorkers]
	}
	return t.Task.Evaluate(ctx, &e, epoch)
}

// Lockstep implements [train.Lockstep] as the task does.
func (t Trained[D]) Lockstep() bool { return train.InLockstep(t.Task) }

// Handover implements [train.Handover] as the task does.
func (t Trained[D]) Handover() bool { return train.HandsOver(t.Task) }

// MaxAge is that of a [train.Aged].
func (t Trained[D]) MaxAge() float64 { return train.MaxAgeOf(t.Task) }

// Stages implements [train.Staged] as the task does.
func (t Trained[D]) Stages(parts int) int { return train.StagesOf(t.Task, parts) }

// evalWorkers is how many workers of a node evaluate on few items.
func (s Setup) evalWorkers() int {
	if s.MaxEvalItems > 0 {
		return 1
	}
	return 0
}
