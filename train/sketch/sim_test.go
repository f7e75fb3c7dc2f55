//go:build !race

package sketch

// The simulator is one goroutine, which the race detector would make slow for
// nothing.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/simtest"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/train"
)

// announced makes a task announce its batches' cells, so that they move and are
// replicated.
type announced struct{ *Task }

func (a announced) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[Batch], error) {
	t, err := a.Task.Trainer(w, part)
	return announcing{t.(*trainer)}, err
}

type announcing struct{ *trainer }

func (a announcing) Load(b *train.Batch[Batch], at train.At) {
	a.trainer.Load(b, at)
	b.Keys = b.Keys[:0]
	for _, x := range a.task.stream.Items[b.Data.from:b.Data.to] {
		for row := range a.task.cfg.Depth {
			b.Keys = append(b.Keys, a.client.first+godwit.Key(int(a.task.cfg.cell(x, row))/a.task.cfg.perKey()))
		}
	}
}

func TestCountsAreExactAfterStormsOfMoves(t *testing.T) {
	for seed, name := range placement.Names() {
		t.Run(name, func(t *testing.T) {
			task := newTask(t, func(c *Config, s *Spec) { c.Width, c.Batch, s.Seed = 6400, 20, uint64(seed) })
			c := simtest.Storm(t, 4, name, uint64(seed), 100*time.Microsecond, task.Tables())
			r, err := c.RunNodes(t.Context(), func(ctx context.Context, env train.Env) error {
				if _, err := train.Run(ctx, env, announced{task}, train.Options{Epochs: 2}); err != nil {
					return err
				}
				q, err := task.EvaluateOn(ctx, &env, "all", 1)
				if err == nil && (q.Total != 40_000 || q.Torn+q.TooSmall > 0) {
					err = fmt.Errorf("%+v, want a total of 40000 and no row torn", q)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			s := r.Sum()
			t.Logf("%d moves, %d replicas set up, %d messages", s.Moves, s.Copies, r.Messages)
			simtest.WasStorm(t, name, s)
		})
	}
}
