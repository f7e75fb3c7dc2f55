package node

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/protocol/placement"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random tests")

func local(t testing.TB, nodes int, cfg Config) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := Local(ctx, nodes, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	return c
}

// each runs a program on every worker of every node.
func each(t testing.TB, c *Cluster, d time.Duration, program func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var wg sync.WaitGroup
	for _, n := range c.Nodes {
		for _, w := range n.Workers() {
			wg.Go(func() {
				id := w.ID()
				rng := rand.New(rand.NewPCG(*seed, uint64(id.Node)<<16|uint64(id.Local)))
				if err := program(ctx, w, rng); err != nil {
					t.Errorf("-seed %d: %v: %v", *seed, id, err)
					cancel()
				}
			})
		}
	}
	wg.Wait()
}

func sum(c *Cluster) (s Stats) {
	for _, n := range c.Nodes {
		s.Add(n.Stats())
	}
	return s
}

// everywhere makes all that was pushed visible everywhere.
func everywhere(ctx context.Context, w godwit.Worker) error {
	if err := w.WaitSync(ctx); err != nil {
		return err
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	return w.WaitSync(ctx)
}

func TestStorm(t *testing.T) {
	const keys, ops = 36, 3000
	for _, name := range placement.Names() {
		p, _ := placement.ByName(name)
		for _, nodes := range []int{1, 2, 3, 5} {
			for _, hints := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%d/hints %v", name, nodes, hints), func(t *testing.T) {
					m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: keys, Dim: 2, Hot: func(r uint64) float64 {
						if r < 1 {
							return 1e6
						}
						return 1
					}})
					if err != nil {
						t.Fatal(err)
					}
					c := local(t, nodes, Config{Model: m, Policy: p, Workers: 2, NoHints: !hints})
					workers := 2 * nodes
					each(t, c, 60*time.Second, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
						key := []godwit.Key{7}
						var hs []godwit.Handle
						dst := make([]float32, 2)
						for i := range ops {
							h, err := w.PushAsync(ctx, key, []float32{1, 2})
							if err != nil {
								return err
							}
							hs = append(hs, h)
							if rng.IntN(10) == 0 {
								if err := w.Wait(ctx, hs...); err != nil {
									return err
								}
								hs = hs[:0]
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
						if want := float32(workers * ops); dst[0] != want || dst[1] != 2*want {
							return fmt.Errorf("reads %v in the end, want %v and %v", dst, want, 2*want)
						}
						return w.Barrier(ctx)
					})
					s := sum(c)
					t.Logf("%.3f of %d accesses without a message, %d moves, %d copies, %d drops, %d forwards", s.NoMessage(), s.Accesses(), s.Moves, s.Copies, s.Drops, s.Forwards)
				})
			}
		}
	}
}
