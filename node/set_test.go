package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
)

// A set is read back by who made it, and what is pushed after it by anybody
// adds to it, while the key is replicated and moves.
func TestSetIsReadBackAndPushesAddToIt(t *testing.T) {
	rounds := often(5)
	const keyCount, pushes = 6, 40
	seen := tally{}
	variants(t, []int{1, 2, 4}, func(t *testing.T, nodes int, cfg Config) {
		cfg.Model = modelOf(t, godwit.Table{Name: "t", Rows: 6, Dim: 3, Hot: first})
		m := cfg.Model
		c := local(t, nodes, cfg)
		keys := []godwit.Key{0, 1, 2, 3, 4, 5}
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			dst := valuesOf(m, keys)
			for round := range rounds {
				if w.ID() == (godwit.WorkerID{}) {
					vals := valuesOf(m, keys)
					for i := range vals {
						vals[i] = float32(1000*(round+1) + i)
					}
					if err := w.Push(ctx, keys, vals); err != nil { // to be overwritten
						return err
					}
					h, err := w.SetAsync(ctx, keys, vals)
					if err != nil {
						return err
					}
					if err := w.Wait(ctx, h); err != nil {
						return err
					}
					if err := w.Pull(ctx, keys, dst); err != nil {
						return err
					}
					for i := range vals {
						if dst[i] != vals[i] {
							return fmt.Errorf("round %d: reads %v at %d after it set it to %v", round, dst[i], i, vals[i])
						}
					}
				}
				if err := everywhere(ctx, w); err != nil {
					return err
				}
				var hs []godwit.Handle
				for range pushes {
					k := keys[rng.IntN(keyCount):][:1]
					if err := announce(w, rng, k); err != nil {
						return err
					}
					for _, one := range keys {
						h, err := w.PushAsync(ctx, []godwit.Key{one}, []float32{1, 2, 3})
						if err != nil {
							return err
						}
						hs = append(hs, h)
					}
					h, err := w.PullAsync(ctx, k, make([]float32, 3))
					if err != nil {
						return err
					}
					hs = append(hs, h)
					if rng.IntN(8) == 0 {
						w.Advance()
					}
				}
				if err := w.Wait(ctx, hs...); err != nil {
					return err
				}
				if err := everywhere(ctx, w); err != nil {
					return err
				}
				if err := w.Pull(ctx, keys, dst); err != nil {
					return err
				}
				for i, got := range dst {
					want := float32(1000*(round+1) + i + 2*nodes*pushes*(i%3+1))
					if got != want {
						return fmt.Errorf("round %d: reads %v at %d, want %v: the set and all pushes", round, got, i, want)
					}
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		seen.add(t, c, cfg.Policy)
	})
	if s := seen["adaptive"]; !t.Failed() && (s.Copies == 0 || s.Replica == 0) {
		t.Error("no replicas: the test is vacuous")
	}
}

// A set through a replica overwrites what was pushed to the replica before it,
// whether that is on its way or not.
func TestSetOverwritesThePushesOfItsNodeBeforeIt(t *testing.T) {
	ctx := background(t)
	c := local(t, 2, Config{Model: model(t, 40, 1), Workers: 2})
	k := homedAt(t, c.Nodes[0], 1, 1)
	// Both nodes want the key: node 0 has a replica.
	must(t, c.Nodes[1].Worker(1).Intent(k, 0, godwit.Forever))
	actedOn(t, c.Nodes[1], k[0]) // else the key would move
	w := c.Nodes[0].Worker(0)
	must(t, w.Intent(k, 0, godwit.Forever))
	eventually(t, "a replica at node 0", func() bool { return holding(c, k[0]) == "RO" })
	dst := make([]float32, 1)
	for i := range 300 * *scale {
		for range i % 4 {
			must(t, w.Push(ctx, k, []float32{1000}))
		}
		want := float32(i)
		must(t, w.Set(ctx, k, []float32{want}))
		for range i % 3 {
			must(t, w.Push(ctx, k, []float32{1}))
			want++
		}
		must(t, w.Pull(ctx, k, dst))
		if dst[0] != want {
			t.Fatalf("round %d: reads %v at its replica, want %v", i, dst[0], want)
		}
		if i%5 == 0 {
			must(t, w.WaitSync(ctx))
			must(t, c.Nodes[1].Worker(0).Pull(ctx, k, dst))
			if dst[0] != want {
				t.Fatalf("round %d: the owner has %v, want %v", i, dst[0], want)
			}
		}
	}
	if holding(c, k[0]) != "RO" {
		t.Error("the replica went: the test is vacuous")
	}
}

// What is pushed before WaitSync is at the owner when it returns; and a replica
// shows after WaitSync what its owner had when it was called.
func TestWaitSyncMakesPushesVisible(t *testing.T) {
	ctx := background(t)
	c := local(t, 3, Config{Model: model(t, 40, 1), Workers: 2})
	k := homedAt(t, c.Nodes[0], 1, 1)
	for _, i := range []int{1, 0, 2} {
		must(t, c.Nodes[i].Worker(1).Intent(k, 0, godwit.Forever))
		actedOn(t, c.Nodes[i], k[0]) // by the owner first, else the key would move
	}
	eventually(t, "replicas at nodes 0 and 2", func() bool { return holding(c, k[0]) == "ROR" })
	total := float32(0)
	dst := make([]float32, 1)
	rng := rngOf(godwit.WorkerID{})
	for round := range 200 * *scale {
		from, to := rng.IntN(3), rng.IntN(3)
		for range 1 + rng.IntN(3) {
			must(t, c.Nodes[from].Worker(0).Push(ctx, k, []float32{1}))
			total++
		}
		must(t, c.Nodes[from].Worker(0).WaitSync(ctx))
		must(t, c.Nodes[1].Worker(0).Pull(ctx, k, dst))
		if dst[0] != total {
			t.Fatalf("-seed %d: round %d: the owner has %v after node %d waited, want %v", *seed, round, dst[0], from, total)
		}
		must(t, c.Nodes[to].Worker(0).WaitSync(ctx))
		must(t, c.Nodes[to].Worker(0).Pull(ctx, k, dst))
		if dst[0] != total {
			t.Fatalf("-seed %d: round %d: node %d reads %v after it waited, want %v", *seed, round, to, dst[0], total)
		}
	}
	if got := holding(c, k[0]); got != "ROR" {
		t.Errorf("held as %s: the test is vacuous", got)
	}
}

func TestABarrierHoldsWhoComesEarlyAndCountsNobodyTwice(t *testing.T) {
	ctx := background(t)
	c := local(t, 2, Config{Model: model(t, 4, 1), Workers: 2})
	early, cancel := context.WithCancel(ctx)
	cancel()
	for range 3 {
		if err := c.Nodes[0].Worker(0).Barrier(early); err == nil {
			t.Fatal("a barrier opened for one worker of four")
		}
	}
	each(t, c, func(ctx context.Context, w godwit.Worker, _ *rand.Rand) error {
		for range 50 {
			if err := w.Barrier(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// actedOn waits until a node has acted on an intent for a key. WaitSync does not
// wait for that.
func actedOn(t *testing.T, n *Node, k godwit.Key) {
	t.Helper()
	eventually(t, "an intent is acted on", func() bool { return n.rows.Holding(k).Wanted })
}
