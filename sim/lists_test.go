package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
)

// batches has workers pull and push the same batches of keys again and again,
// several at a time, and returns all values at the end.
func batches(t *testing.T, policy placement.Policy, forgets float64, fresh bool) ([]float32, node.Stats) {
	t.Helper()
	const keys, batch = 1000, 180
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: keys, Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := cluster(t, Config{Nodes: 3, Workers: 2, Seed: 5, Model: m, Policy: policy, Forgets: forgets, Watch: true,
		Network: Network{Latency: 50 * time.Microsecond, Jitter: 100 * time.Microsecond}, Compute: Compute{Record: 100 * time.Nanosecond}})
	r, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		id := w.ID()
		rng := rand.New(rand.NewPCG(7, uint64(id.Node)<<8|uint64(id.Local)))
		var lists [6][]godwit.Key
		draw := func() {
			for i := range lists {
				lists[i] = lists[i][:0]
				for _, k := range rng.Perm(keys)[:batch] {
					lists[i] = append(lists[i], godwit.Key(k))
				}
			}
		}
		draw()
		one, got := make([]float32, 2*batch), make([]float32, 2*batch)
		for i := range one {
			one[i] = 1
		}
		for range 12 {
			if fresh {
				draw()
			}
			var hs []godwit.Handle
			for _, l := range lists {
				h, err := w.PushAsync(ctx, l, one)
				if err != nil {
					return err
				}
				hs = append(hs, h)
			}
			if err := w.Wait(ctx, hs...); err != nil {
				return err
			}
			for _, l := range lists {
				if err := w.Pull(ctx, l, got); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	return values(t, c, keys), r.Sum()
}

// values pulls all keys of 2 floats.
func values(t *testing.T, c *Cluster, keys int) []float32 {
	t.Helper()
	got := make([]float32, 2*keys)
	_, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		if w.ID() != (godwit.WorkerID{}) {
			return nil
		}
		all := make([]godwit.Key, keys)
		for i := range all {
			all[i] = godwit.Key(i)
		}
		return w.Pull(ctx, all, got)
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// C26 of the classic parameter server: lists of keys that are hit, missed and
// forgotten lead to the same results as lists that are sent; a miss costs a
// question and an answer.
func TestConformanceC26ForgottenListsOfKeysChangeNoResult(t *testing.T) {
	for _, policy := range []placement.Policy{placement.Static, placement.RelocateAll, placement.AdaPM} {
		t.Run(fmt.Sprint(policy.Name()), func(t *testing.T) {
			want, plain := batches(t, policy, 0, false)
			if plain.ListHits == 0 || plain.ListMisses != 0 {
				t.Fatalf("%d hits and %d misses without forgetting", plain.ListHits, plain.ListMisses)
			}
			got, forgot := batches(t, policy, 0.2, false)
			if forgot.ListMisses == 0 || forgot.ListHits == 0 {
				t.Fatalf("%d hits and %d misses with forgetting: nothing was tested", forgot.ListHits, forgot.ListMisses)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("float %d is %v where lists were forgotten, and else %v", i, got[i], want[i])
				}
			}
		})
	}
	if _, s := batches(t, placement.Static, 0.2, true); s.ListHits != 0 || s.ListMisses != 0 {
		t.Errorf("%d hits and %d misses of lists that never came again", s.ListHits, s.ListMisses)
	}
}
