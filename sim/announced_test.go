package sim

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// Workers with short steps that announce far ahead keys that other nodes use, too, wait for hardly any message: what a
// node has, or got, in time stays until it was used.
func TestAnnouncedKeysStayUntilTheyWereUsed(t *testing.T) {
	const nodes, steps, keys, ahead, rows = 4, 400, 100, 64, 30_000
	c := cluster(t, Config{Nodes: nodes, Workers: 1, Seed: 1, Model: model(t, rows, 2), Policy: placement.Adaptive,
		Network: Network{Latency: 50 * time.Microsecond}, Compute: Compute{Step: 200 * time.Microsecond, Spread: 0.2}})
	warm := make([]uint64, nodes)
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		rng := rand.New(rand.NewPCG(7, uint64(w.ID().Node)))
		batches := make([][]godwit.Key, steps)
		for i := range batches {
			for range keys { // skewed: an eighth of the keys has half of the accesses
				x := rng.Float64()
				batches[i] = append(batches[i], godwit.Key(x*x*x*rows))
			}
		}
		return makeSteps(ctx, w, batches, 2, ahead, func(i int) {
			if i == steps/2 {
				s := c.Stats(int(w.ID().Node))
				warm[w.ID().Node] = s.Remote + s.Late
			}
		})
	})
	var waited, moved uint64
	for n := range nodes {
		s := c.Stats(n)
		waited += s.Remote + s.Late - warm[n]
		moved += s.Moves
	}
	if all := uint64(nodes * steps / 2 * keys * 2); waited*2000 > all {
		t.Errorf("%d of %d accesses that were announced %d steps ahead were by message", waited, all, ahead)
	}
	if moved < nodes*steps*10 {
		t.Errorf("only %d keys moved: the test is vacuous", moved)
	}
}
