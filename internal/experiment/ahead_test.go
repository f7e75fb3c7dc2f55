package experiment

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
)

// Steps whose rows are fetched ahead wait for no round trip, lack at the most the worker's
// last write, and lose none.
func TestFetchingAheadHidesRoundTripsAndLosesNothing(t *testing.T) {
	const steps = 50
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: 8, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]godwit.Key, 8)
	for i := range keys {
		keys[i] = m.Key(0, uint64(i))
	}
	ones := []float32{1, 1, 1, 1, 1, 1, 1, 1}
	var took [2]time.Duration
	for i := range took {
		c, err := cluster(sim.Config{Nodes: 2, Workers: 1, Seed: 1, Model: m, Policy: placement.Static, Compute: sim.Compute{Step: time.Millisecond}}, "10g")
		if err != nil {
			t.Fatal(err)
		}
		evaluating := false
		res, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
			if w.ID().Node == 1 {
				return nil
			}
			if i == 1 {
				w = &ahead{inner: inner{w}, evaluating: &evaluating}
			}
			for s := range godwit.Clock(steps) {
				if err := w.Intent(keys, s, s+1); err != nil {
					return err
				}
			}
			got := make([]float32, len(keys))
			for s := range steps {
				if err := w.Pull(ctx, keys, got); err != nil {
					return err
				}
				for _, x := range got {
					if x > float32(s) || x < float32(s-i) {
						t.Errorf("step %d reads %v", s, got)
						break
					}
				}
				if err := w.Push(ctx, keys, ones); err != nil {
					return err
				}
				w.Advance()
			}
			if err := w.WaitSync(ctx); err != nil {
				return err
			}
			evaluating = true
			if err := w.Pull(ctx, keys, got); err != nil {
				return err
			}
			for _, x := range got {
				if x != steps {
					t.Errorf("in the end %v, want %d of each", got, steps)
					break
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if took[i] = res.Elapsed; c.Computed(0) != steps*time.Millisecond {
			t.Errorf("node 0 computed for %v, want %v", c.Computed(0), steps*time.Millisecond)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	// A step without it waits for two round trips of 50 µs at least.
	if saved := took[0] - took[1]; saved < (steps-2)*80*time.Microsecond {
		t.Errorf("%v without, %v with", took[0], took[1])
	}
}
