package sim

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// Steps that use the same keys again and again have copies of them, for longer steps than others, if their table is relaxed: copies bring the changes of
// several steps in one message. The values of other tables are fetched ahead, and those of steps that are far longer than a message takes, too.
func TestLongStepsHaveCopiesOfRelaxedTables(t *testing.T) {
	const nodes, steps, keys, rows = 4, 120, 300, 330
	for name, x := range map[string]struct {
		step    time.Duration
		relaxed bool
		rows    int
		copied  bool
	}{
		"relaxed":                          {3 * time.Millisecond, true, rows, true},
		"not relaxed":                      {3 * time.Millisecond, false, rows, false},
		"relaxed, far longer":              {40 * time.Millisecond, true, rows, false},
		"relaxed, other keys in each step": {3 * time.Millisecond, true, 64 * rows, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: uint64(x.rows), Dim: 2, Relaxed: x.relaxed})
			if err != nil {
				t.Fatal(err)
			}
			c := cluster(t, Config{Nodes: nodes, Workers: 1, Seed: 1, Model: m, Policy: placement.Adaptive,
				Network: Network{Latency: 20 * time.Microsecond}, Compute: Compute{Step: x.step, Spread: 0.2}})
			var before [nodes]uint64 // accesses at copies when the worker begins its last third
			r := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
				rng := rand.New(rand.NewPCG(1, uint64(w.ID().Node)))
				batches := make([][]godwit.Key, steps)
				for i := range batches {
					for _, k := range rng.Perm(x.rows)[:keys] {
						batches[i] = append(batches[i], godwit.Key(k))
					}
				}
				return makeSteps(ctx, w, batches, 2, 4, func(i int) {
					if i == steps*2/3 {
						before[w.ID().Node] = c.Node(int(w.ID().Node)).Stats().Replica
					}
				})
			})
			copied := r.Sum().Replica
			for _, b := range before {
				copied -= b
			}
			const elsewhere = 2 * nodes * steps / 3 * keys * (nodes - 1) / nodes
			if x.copied && copied < elsewhere*9/10 || !x.copied && copied > elsewhere/50 {
				t.Errorf("of %d accesses in the last third to keys whose homes are elsewhere, %d were at copies", elsewhere, copied)
			}
		})
	}
}
