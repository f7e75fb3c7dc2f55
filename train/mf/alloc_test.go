//go:build !race

package mf

import (
	"context"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

// idle is a worker that moves nothing.
type idle struct{ godwit.Worker }

func (idle) Pull(context.Context, []godwit.Key, []float32) error { return nil }
func (idle) Push(context.Context, []godwit.Key, []float32) error { return nil }

func TestStepsAllocateNothingOnceBuffersHaveGrown(t *testing.T) {
	for _, order := range Orders() {
		for _, rule := range []string{SGD, "adagrad"} {
			c := small(order)
			c.Rule, c.BoldDriver = rule, false
			task, s := setup(t, c, randomSet(30, 20, 3200, 2), 1, 1)
			tr, err := task.Trainer(idle{s.Workers(0)[0]}, train.Partition{Count: 1})
			if err != nil {
				t.Fatal(err)
			}
			var b train.Batch[Batch]
			step, chunks := 0, max(1, task.Chunks())
			var ats []train.At
			for epoch := 1; epoch <= 4; epoch++ {
				ats = slices.AppendSeq(ats, traintest.Steps(tr, chunks, epoch))
			}
			perEpoch := len(ats) / 4
			work := func() {
				tr.Load(&b, ats[step])
				if _, err := tr.Step(t.Context(), &b); err != nil {
					t.Fatal(err)
				}
				step++
			}
			for range 2 * perEpoch {
				work()
			}
			// The begin of an epoch makes generators, and a permutation.
			if n := testing.AllocsPerRun(perEpoch, work); n > 0 {
				t.Errorf("%s, %s: a step allocates %v times", order, rule, n)
			}
		}
	}
}
