//go:build !race

package mf

import (
	"context"
	"testing"

	"github.com/godwit-ps/godwit"
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
			epoch, step := 1, 0
			work := func() {
				tr.Load(&b, epoch, step)
				if _, err := tr.Step(t.Context(), &b); err != nil {
					t.Fatal(err)
				}
				if step++; step == tr.Steps() {
					epoch, step = epoch+1, 0
				}
			}
			for range 2 * tr.Steps() {
				work()
			}
			// The begin of an epoch makes generators, and a permutation.
			if n := testing.AllocsPerRun(tr.Steps(), work); n > 0 {
				t.Errorf("%s, %s: a step allocates %v times", order, rule, n)
			}
		}
	}
}
