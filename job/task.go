package job

import (
	"context"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
)

// A task is what a job needs of a task of package train whose data are loaded.
type task interface {
	// fingerprint stands for settings and data.
	fingerprint() string
	// size is a line about the data, for people.
	size() string
	tables() []godwit.Table
	samplers() []sampling.Spec
	// unit is what an item of the data is called, in the plural, and how many
	// examples of a loss each makes.
	unit() (name string, examples int64)
	// train trains on all nodes, and adds to seen the examples as they go.
	train(ctx context.Context, env train.Env, o train.Options, seen *atomic.Int64) (*train.Report, error)
	// test judges the model on the data held out for the end, or on a part of
	// them. All nodes call it, each time with another name.
	test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error)
	export(ctx context.Context, w godwit.Worker, dir string) error
}

// A metered task counts the examples that its trainers train.
type metered[D any] struct {
	train.Task[D]
	seen *atomic.Int64
}

func (m metered[D]) Trainer(w godwit.Worker, part train.Part) (train.Trainer[D], error) {
	t, err := m.Task.Trainer(w, part)
	if err != nil {
		return nil, err
	}
	return meteredTrainer[D]{t, m.seen}, nil
}

type meteredTrainer[D any] struct {
	train.Trainer[D]
	seen *atomic.Int64
}

func (m meteredTrainer[D]) Step(ctx context.Context, b *train.Batch[D]) (train.Loss, error) {
	l, err := m.Trainer.Step(ctx, b)
	m.seen.Add(l.Examples)
	return l, err
}
