package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

// Announcing keys that all nodes use makes no step longer, however long steps are beside a round trip, and short steps by far
// shorter.
func TestAnnouncedStepsTakeNoLongerThanOthers(t *testing.T) {
	for _, x := range []struct {
		latency, step time.Duration
		least         float64 // how many times as fast announced steps are
	}{
		{50 * time.Microsecond, 200 * time.Microsecond, 1.5},
		{50 * time.Microsecond, 2 * time.Millisecond, 1},
		{500 * time.Microsecond, 200 * time.Microsecond, 3},
		{500 * time.Microsecond, 2 * time.Millisecond, 1},
	} {
		t.Run(fmt.Sprintf("steps of %v, %v one way", x.step, x.latency), func(t *testing.T) {
			other := announcedStep(t, x.latency, x.step, 0)
			announced := announcedStep(t, x.latency, x.step, 8)
			t.Logf("a step takes %v announced, %v else", announced, other)
			if float64(announced)*x.least > float64(other) {
				t.Errorf("a step takes %v announced, %v else: want %v times as fast at least", announced, other, x.least)
			}
		})
	}
}

// announcedStep returns how long a step of four workers takes, in the second half of a run, that announce keys so many steps
// ahead; 0: not at all.
func announcedStep(t *testing.T, latency, step time.Duration, ahead int) time.Duration {
	t.Helper()
	const nodes, steps, keys, rows = 4, 160, 100, 30_000
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: 2, Rule: optim.AdaGrad{LR: 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	c := cluster(t, Config{Nodes: nodes, Workers: 1, Seed: 1, Model: m, Policy: placement.Adaptive,
		Network: Network{Latency: latency}, Compute: Compute{Step: step, Spread: 0.2}})
	var half time.Duration
	r := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		rng := rand.New(rand.NewPCG(7, uint64(w.ID().Node)))
		batches := make([][]godwit.Key, steps)
		for i := range batches {
			for range keys { // skewed: an eighth of the keys has half of the accesses
				x := rng.Float64()
				batches[i] = append(batches[i], godwit.Key(x*x*x*rows))
			}
		}
		v := make([]float32, 2*keys)
		told := 0
		for i, b := range batches {
			if i == steps/2 {
				half = max(half, c.Now())
			}
			for ; ahead > 0 && told < steps && told <= i+ahead; told++ {
				if err := w.Intent(batches[told], godwit.Clock(told), godwit.Clock(told+1)); err != nil {
					return err
				}
			}
			if err := w.Pull(ctx, b, v); err != nil {
				return err
			}
			if err := w.Push(ctx, b, v); err != nil {
				return err
			}
			w.Advance()
		}
		return nil
	})
	return (r.Elapsed - half) / (steps / 2)
}
