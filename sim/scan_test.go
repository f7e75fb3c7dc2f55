package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// Two workers move keys to and fro, in bulk and across the bounds of answers,
// while others scan all of them, again and again.
func TestConformanceC25AScanMissesNoKeyAndDoublesNoneWhileKeysMove(t *testing.T) {
	const keys, nodes, scans = 20_000, 3, 4
	var moved uint64
	for seed := uint64(1); seed <= 3; seed++ {
		c := cluster(t, Config{Nodes: nodes, Workers: 2, Seed: seed, Model: model(t, keys, 1), Policy: placement.RelocateAll,
			Network: Network{Latency: 50 * time.Microsecond, Jitter: 100 * time.Microsecond}, Compute: Compute{Record: 100 * time.Nanosecond}})
		used := func(k godwit.Key) bool { return k%5 != 2 }
		scanning := nodes
		run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
			rng := rand.New(rand.NewPCG(seed, uint64(w.ID().Node)<<8|uint64(w.ID().Local)))
			for k := godwit.Key(0); k < keys; k++ {
				if int(k)%nodes == int(w.ID().Node) && w.ID().Local == 0 && used(k) {
					if err := w.Push(ctx, []godwit.Key{k}, []float32{float32(k)}); err != nil {
						return err
					}
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			if w.ID().Local == 1 {
				return shuffle(ctx, w, rng, keys, used, &scanning)
			}
			defer func() { scanning-- }()
			before := c.Stats(0).Moves
			for range scans {
				next := godwit.Key(0)
				for row, err := range godwit.Rows(ctx, w, 0, keys, godwit.NoNode) {
					for err == nil && !used(next) {
						next++
					}
					if err != nil || row.Key != next || row.Value[0] != float32(next) {
						return fmt.Errorf("seed %d: row %+v comes where key %d should (%w)", seed, row, next, err)
					}
					next++
				}
				if next < keys-1 {
					return fmt.Errorf("seed %d: the scan ends before key %d", seed, next)
				}
			}
			moved += c.Stats(0).Moves - before
			return nil
		})
	}
	t.Logf("%d moves", moved)
	if moved < 1000 {
		t.Error("the test is vacuous")
	}
}

// shuffle has ranges of keys move to the worker's node while others scan.
func shuffle(ctx context.Context, w godwit.Worker, rng *rand.Rand, keys int, used func(godwit.Key) bool, scanning *int) error {
	for *scanning > 0 {
		first := rng.IntN(keys)
		var some []godwit.Key
		for k := godwit.Key(first); k < godwit.Key(min(keys, first+200)); k++ {
			if used(k) {
				some = append(some, k)
			}
		}
		if err := w.Localize(ctx, some); err != nil {
			return err
		}
	}
	return nil
}
