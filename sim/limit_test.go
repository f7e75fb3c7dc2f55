package sim

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
)

// pushing has node 1 push to a hot key whose owner is node 0, once a
// millisecond: first a value before its first Advance, then ones from it on. It
// returns the sum that everybody sees after WaitSync.
func pushing(t *testing.T, policy string, first float32, then []float32) (sum float32, s node.Stats) {
	t.Helper()
	p, err := placement.ByName(policy)
	if err != nil {
		t.Fatal(err)
	}
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 200, Dim: 4, Hot: func(row uint64) float64 { return float64(1 - min(row, 1)) }})
	if err != nil {
		t.Fatal(err)
	}
	c := cluster(t, Config{Nodes: 2, Workers: 1, Seed: 1, Model: m, Policy: p,
		Network: Network{Latency: 20 * time.Microsecond}, Compute: Compute{Step: time.Millisecond}, Watch: true})
	pusher := 1 - c.hosts[0].node.Home(0)
	r, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		k, v := []godwit.Key{0}, make([]float32, 4)
		if w.ID().Node == pusher {
			for i, x := range append([]float32{first}, then...) {
				if err := w.Pull(ctx, k, v); err != nil {
					return err
				}
				if i > 0 {
					w.Advance()
				}
				if err := w.Push(ctx, k, []float32{x, 0, 0, 0}); err != nil {
					return err
				}
				if i == 0 {
					if err := w.WaitSync(ctx); err != nil {
						return err
					}
				}
			}
		}
		if err := w.WaitSync(ctx); err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if err := w.WaitSync(ctx); err != nil {
			return err
		}
		return w.Pull(ctx, k, v)
	})
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c.Value(0)[0], r.Sum()
}

func repeat(x float32, n int) []float32 {
	xs := make([]float32, n)
	for i := range xs {
		xs[i] = x
	}
	return xs
}

func TestSmallUpdatesWaitForAThreshold(t *testing.T) {
	ones := repeat(1, 400)
	sum, free := pushing(t, "nonuniform", 0, ones)
	if sum != 400 || free.Deltas < 300 {
		t.Fatalf("without a threshold: sum %v in %d updates: the test is vacuous", sum, free.Deltas)
	}
	sum, s := pushing(t, "nonuniform(threshold=20)", 0, ones)
	if sum != 400 {
		t.Errorf("the sum is %v after WaitSync, want 400", sum)
	}
	if s.Deltas < 15 || s.Deltas > 21 {
		t.Errorf("%d updates of 400 pushes with a threshold of 20", s.Deltas)
	}
	// Less than the threshold in all: it goes with WaitSync alone.
	if sum, s := pushing(t, "nonuniform(threshold=1000)", 0, ones); sum != 400 || s.Deltas != 1 {
		t.Errorf("the sum is %v in %d updates, want 400 in one", sum, s.Deltas)
	}
}

func TestRoundsKeepToARate(t *testing.T) {
	ones := repeat(1, 400) // 0.4 s
	for rate, most := range map[string]uint64{"25": 13, "100": 43} {
		sum, s := pushing(t, "nonuniform(rate="+rate+")", 0, ones)
		if sum != 400 || s.Deltas > most || s.Deltas < most/2 {
			t.Errorf("%s rounds a second: sum %v in %d updates in 0.4 s, want 400 in at most %d", rate, sum, s.Deltas, most)
		}
	}
}

func TestUpdatesFarLongerThanUsualAreClipped(t *testing.T) {
	pushes := append(append(repeat(1, 300), 1000), repeat(1, 100)...)
	if sum, s := pushing(t, "nonuniform", 500, pushes); sum != 1900 || s.Clipped != 0 {
		t.Errorf("without clipping: sum %v, %d updates clipped", sum, s.Clipped)
	}
	// The usual update is of one push, or of two. What came before the first
	// Advance is exempt and no part of what is usual.
	sum, s := pushing(t, "nonuniform(clip=5)", 500, pushes)
	if sum < 903 || sum > 912 || s.Clipped != 1 {
		t.Errorf("sum %v, %d updates clipped, want 500 + 400 + 5 times the usual, 1 clipped", sum, s.Clipped)
	}
	// Too few to know what is usual.
	if sum, s := pushing(t, "nonuniform(clip=5)", 0, append(repeat(1, 10), 1000)); sum != 1010 || s.Clipped != 0 {
		t.Errorf("sum %v, %d updates clipped, want 1010 and none", sum, s.Clipped)
	}
}

// What the protocol promises holds whatever is held back.
func TestStormsWithHeldBackUpdates(t *testing.T) {
	for _, name := range []string{"nonuniform(factor=2,threshold=2)", "nonuniform(factor=2,rate=500)", "nonuniform(hot=1,rate=5000,threshold=2)"} {
		p, err := placement.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		const n = 150
		r := Storms(context.Background(), 1, n, StormConfig{Policy: p}, 2)
		if r.Failed != nil {
			t.Errorf("%s: %v", name, r.Failed)
		} else if r.Copies < 2*n || r.Moves < n {
			t.Errorf("%s: %+v: the test is vacuous", name, *r)
		}
	}
}
