//go:build !race

package lda

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

// Words are wanted by all nodes all the time: their counts move and are
// replicated without end, over a network with jitter and spikes. Each policy
// has another storm.
func TestCountsAreExactAfterStormsOfMoves(t *testing.T) {
	for seed, name := range placement.Names() {
		t.Run(name, func(t *testing.T) {
			task := newTask(t, func(c *Config) { c.Batch, c.Seed = 120, uint64(seed) })
			c := simtest.Storm(t, 4, name, uint64(seed), 300*time.Microsecond, task.Tables())
			const epochs = 4
			r, err := c.RunNodes(t.Context(), func(ctx context.Context, env train.Env) error {
				rep, err := train.Run(ctx, env, task, train.Options{Epochs: epochs, EvalEvery: 1})
				if err != nil {
					return err
				}
				for i, ev := range rep.Results {
					if len(ev.Warnings) > 0 {
						return fmt.Errorf("after epoch %d: %v", rep.Evaluated[i], ev.Warnings)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			s := r.Sum()
			t.Logf("%d moves, %d replicas set up, %d messages", s.Moves, s.Copies, r.Messages)
			simtest.WasStorm(t, name, s)
			model, err := godwit.NewModel(task.Tables()...)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for k := range model.Keys() {
				if table, _ := model.Locate(godwit.Key(k)); model.Table(table).Name != TopicTable {
					continue
				}
				for _, x := range c.Value(godwit.Key(k)) {
					sum += float64(x)
				}
			}
			if sum != float64(len(task.docs.Words)) {
				t.Errorf("%v words are counted, want %d", sum, len(task.docs.Words))
			}
		})
	}
}
