package task

import (
	"context"
	"sync/atomic"

	"github.com/godwit-ps/godwit/train"
)

// Trained is what all tasks have in common: a [Task] embeds it.
type Trained[D any] struct {
	train.Task[D]
	// Judges is how many workers of a node judge the model between epochs;
	// 0: all.
	Judges int
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
	if t.Judges > 0 && t.Judges < len(e.Workers) {
		e.Workers = e.Workers[:t.Judges]
	}
	return t.Task.Evaluate(ctx, &e, epoch)
}

// Lockstep implements [train.Lockstep] as the task does.
func (t Trained[D]) Lockstep() bool { return train.InLockstep(t.Task) }

// judges is how many workers of a node judge a few items.
func (s Setup) judges() int {
	if s.MaxEvalItems > 0 {
		return 1
	}
	return 0
}
