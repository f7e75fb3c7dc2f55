package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// Under any policy that makes copies, on any network, with nodes of any speed: when a worker that has bounded the age of what it reads pulls, each other node has
// begun a sync round since the worker was as many steps back, whatever the other workers do, who may do nothing at all. Over
// all seeds, many pulls wait for that.
func TestAPullIsNoOlderThanItsWorkerAllows(t *testing.T) {
	first, n := uint64(1), uint64(60)
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	waited, narrowed := uint64(0), 0
	for seed := first; seed < first+n; seed++ {
		rng := rand.New(rand.NewPCG(seed, 0xa9e))
		nodes, workers := 2+rng.IntN(4), 1+rng.IntN(3)
		p := stormPolicy(rng)
		c, err := New(Config{Nodes: nodes, Workers: workers, Seed: seed, Policy: p, Model: boundModel(t, nodes*workers, godwit.Table{}),
			Network: randomNetwork(rng, nodes), Compute: randomCompute(rng), Watch: true})
		if err != nil {
			t.Fatal(err)
		}
		lazy := rng.IntN(2) == 0 // half of the workers make few steps
		res, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
			id := int(w.ID().Node)*workers + w.ID().Local
			rng := rand.New(rand.NewPCG(seed, uint64(id)))
			most := godwit.Clock(1 + rng.IntN(6))
			w.BoundAge(most)
			from := w.Clock() // what the worker read then counts as new
			begun := map[godwit.Clock][]uint64{}
			look := func() (rounds []uint64) {
				for i := range nodes {
					rounds = append(rounds, c.Stats(i).Rounds)
				}
				return rounds
			}
			steps := 40
			if lazy && id%2 == 1 {
				steps = 2
			}
			v := make([]float32, 2*nodes*workers)
			for range steps {
				keys := []godwit.Key{godwit.Key(rng.IntN(12)), godwit.Key(rng.IntN(12))}
				if rng.IntN(2) == 0 {
					if err := w.Intent(keys, w.Clock(), w.Clock()+2); err != nil {
						return err
					}
				}
				if err := w.Pull(ctx, keys, v); err != nil {
					return err
				}
				if then := begun[w.Clock()-most]; w.Clock()-most > from && then != nil && placement.Replicates(p) {
					for i, now := range look() {
						if i != int(w.ID().Node) && now <= then[i] {
							return fmt.Errorf("at clock %d, with a bound of %d steps, node %d has made %d rounds, as many as %d steps before", w.Clock(), most, i, now, most)
						}
					}
				}
				if err := w.Push(ctx, keys, v); err != nil {
					return err
				}
				if rng.IntN(20) == 0 {
					most = godwit.Clock(1 + rng.IntN(6))
					w.BoundAge(most)
					from, narrowed = w.Clock()+most+8, narrowed+1 // what is under way may have begun for the wider one
				}
				begun[w.Advance()] = look()
			}
			return nil
		})
		if err != nil {
			t.Fatalf("-seed %d: under %s, %d nodes of %d workers: %v", seed, p.Name(), nodes, workers, err)
		}
		for _, s := range res.Stats {
			waited += s.Blocked
		}
		c.Close()
	}
	if *seedFlag == 0 && (waited < 1000 || narrowed < 100) {
		t.Errorf("only %d pulls waited, and bounds changed %d times: the test is vacuous", waited, narrowed)
	}
}
