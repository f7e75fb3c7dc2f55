package node

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// All workers push to one key and read it without waiting, while it moves and
// is replicated as the policy likes. In the end no push is lost or doubled.
func TestNoPushIsLostWhileAllWorkersPushToOneKey(t *testing.T) {
	const key = 7
	ops, numbers := often(10_000), fewer(1, 2, 3, 5)
	seen := tally{}
	storms := func(of ...string) {
		variantsOf(t, of, numbers, func(t *testing.T, nodes int, cfg Config) {
			cfg.Model = modelOf(t, godwit.Table{Name: "t", Rows: 36, Dim: 2, Hot: first})
			c := local(t, nodes, cfg)
			each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
				return storm(ctx, w, rng, key, ops, float32(2*nodes*ops))
			})
			seen.add(t, c, cfg.Policy)
		})
	}
	storms(placement.Names()...)
	for range 4 { // how often one key moves is a matter of the machine's timing
		if missed := seen.missed(true); !t.Failed() && len(missed) > 0 {
			storms(slices.Sorted(maps.Keys(missed))...)
		}
	}
	seen.check(t, true)
}

// The same on the key that the policy nonuniform replicates from the start.
func TestNoPushIsLostOnAHotKey(t *testing.T) {
	ops := 1000 * *scale
	variants(t, []int{2, 3}, func(t *testing.T, nodes int, cfg Config) {
		cfg.Model = modelOf(t, godwit.Table{Name: "t", Rows: 360, Dim: 2, Hot: first})
		c := local(t, nodes, cfg)
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			return storm(ctx, w, rng, 0, ops, float32(2*nodes*ops))
		})
		if s := sum(c); cfg.Policy.Everywhere(true) && s.Copies == 0 {
			t.Error("the hot key was never replicated: the test is vacuous")
		}
	})
}

func storm(ctx context.Context, w godwit.Worker, rng *rand.Rand, k godwit.Key, ops int, want float32) error {
	key := []godwit.Key{k}
	var hs []godwit.Handle
	dst := make([]float32, 2)
	dsts := make([][]float32, 8)
	for i := range dsts {
		dsts[i] = make([]float32, 2)
	}
	pulls := 0
	for i := range ops {
		h, err := w.PushAsync(ctx, key, []float32{1, 2})
		if err != nil {
			return err
		}
		hs = append(hs, h)
		if pulls < len(dsts) && rng.IntN(4) == 0 {
			h, err := w.PullAsync(ctx, key, dsts[pulls])
			if err != nil {
				return err
			}
			hs = append(hs, h)
			pulls++
		}
		if rng.IntN(10) == 0 {
			if err := w.Wait(ctx, hs...); err != nil {
				return err
			}
			for _, d := range dsts[:pulls] {
				if d[1] != 2*d[0] {
					return fmt.Errorf("reads the torn value %v", d)
				}
			}
			hs, pulls = hs[:0], 0
			if err := w.Pull(ctx, key, dst); err != nil {
				return err
			}
			if int(dst[0]) < i+1 || dst[1] != 2*dst[0] {
				return fmt.Errorf("reads %v after %d pushes of its own", dst, i+1)
			}
		}
		if rng.IntN(50) == 0 {
			if err := w.Intent(key, w.Clock()+10, w.Clock()+40); err != nil {
				return err
			}
		}
		if rng.IntN(200) == 0 {
			h, err := w.LocalizeAsync(ctx, key)
			if err != nil {
				return err
			}
			hs = append(hs, h)
		}
		w.Advance()
	}
	if err := w.Wait(ctx, hs...); err != nil {
		return err
	}
	if err := everywhere(ctx, w); err != nil {
		return err
	}
	if err := w.Pull(ctx, key, dst); err != nil {
		return err
	}
	if dst[0] != want || dst[1] != 2*want {
		return fmt.Errorf("reads %v in the end, want %v and %v", dst, want, 2*want)
	}
	return w.Barrier(ctx)
}
