package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// Nodes that measure which keys are hot come to the same ones, at different
// moments and on networks that nobody should have: no push is lost while moving
// keys become replicated ones, and every node holds them in the end.
func TestKeysBecomeHotWithoutLosingAPush(t *testing.T) {
	p, err := placement.ByName("nonuniform(factor=5)")
	if err != nil {
		t.Fatal(err)
	}
	const rows = 60
	m := model(t, rows, 1)
	moves, copies := uint64(0), uint64(0)
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		nodes := 2 + rng.IntN(4)
		c := cluster(t, Config{Nodes: nodes, Workers: 2, Seed: seed, Model: m, Policy: p, NoHints: rng.IntN(2) == 0,
			Network: randomNetwork(rng, nodes), Compute: randomCompute(rng), Watch: true})
		var pushed [rows]float32
		r, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
			rng := rand.New(rand.NewPCG(seed, uint64(w.ID().Node)<<8+uint64(w.ID().Local)))
			draw := func() []godwit.Key {
				if rng.IntN(2) == 0 {
					return []godwit.Key{godwit.Key(rng.Uint64N(3))}
				}
				return []godwit.Key{godwit.Key(rng.Uint64N(rows))}
			}
			v := make([]float32, 1)
			for range 60 {
				k := draw()
				if err := w.Intent(k, w.Clock()+1, w.Clock()+3); err != nil {
					return err
				}
				if err := w.Pull(ctx, draw(), v); err != nil {
					return err
				}
				if err := w.Push(ctx, k, []float32{1}); err != nil {
					return err
				}
				pushed[k[0]]++
				if rng.IntN(5) == 0 {
					if err := w.Localize(ctx, draw()); err != nil {
						return err
					}
				}
				w.Advance()
			}
			if err := w.WaitSync(ctx); err != nil {
				return err
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			return w.WaitSync(ctx)
		})
		if err == nil {
			err = c.Check()
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for k := range godwit.Key(rows) {
			if v := c.Value(k); v == nil && pushed[k] > 0 || v != nil && v[0] != pushed[k] {
				t.Errorf("seed %d: key %d has the value %v, %v was pushed", seed, k, v, pushed[k])
			}
		}
		hot := r.Stats[0].Hot
		for _, s := range r.Stats {
			if s.Hot != hot {
				t.Errorf("seed %d: the nodes know %d and %d hot keys", seed, hot, s.Hot)
			}
		}
		if err := heldEverywhere(c, hot); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		s := r.Sum()
		moves += s.Moves
		copies += s.Copies
	}
	if moves < 1000 || copies < 100 {
		t.Errorf("%d moves, %d copies: the test is vacuous", moves, copies)
	}
}

// heldEverywhere checks that just so many keys have a copy at all nodes.
func heldEverywhere(c *Cluster, hot int) error {
	n := 0
	for k := godwit.Key(0); c.cfg.Model.Has(k); k++ {
		switch _, _, replicas := c.holdings(k); len(replicas) {
		case 0:
		case len(c.hosts) - 1:
			n++
		default:
			return fmt.Errorf("key %d is replicated at %v, want all but one of %d nodes, or none", k, replicas, len(c.hosts))
		}
	}
	if n != hot {
		return fmt.Errorf("%d keys are everywhere, %d are hot", n, hot)
	}
	return nil
}
