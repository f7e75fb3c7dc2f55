package sim_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
)

// Four nodes push to one key, which has its home at one of them. The classic
// server sends every push there. Godwit gives each node a replica in time.
func Example() {
	model, err := godwit.NewModel(godwit.Table{Name: "counters", Rows: 100, Dim: 1})
	if err != nil {
		panic(err)
	}
	network, err := sim.NetworkNamed("10g")
	if err != nil {
		panic(err)
	}
	for _, policy := range []placement.Policy{placement.Static, placement.Adaptive} {
		c, err := sim.New(sim.Config{
			Nodes: 4, Workers: 1, Seed: 1, Model: model, Policy: policy, Network: network,
			Compute: sim.Compute{Step: 100 * time.Microsecond},
		})
		if err != nil {
			panic(err)
		}
		r, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
			key := []godwit.Key{7}
			if err := w.Intent(key, 10, 110); err != nil {
				return err
			}
			for range 110 {
				if err := w.Push(ctx, key, []float32{1}); err != nil {
					return err
				}
				w.Advance()
			}
			return nil
		})
		if err != nil {
			panic(err)
		}
		sum := r.Sum()
		fmt.Printf("%s: %v pushes, %d of %d by message\n", policy.Name(), c.Value(7)[0], sum.Remote, sum.Accesses())
		if err := c.Close(); err != nil {
			panic(err)
		}
	}
	// Output:
	// static: 440 pushes, 330 of 440 by message
	// adaptive: 440 pushes, 0 of 440 by message
}
