package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// BenchmarkUnannounced is of programs that only pull and push, on four nodes of one worker: of keys
// that are popular by Zipf's law with all of them (shared), or nine of ten times of keys that a node
// has for itself, wherever these are (own). An operation is a step: a pull of some keys, and a push.
func BenchmarkUnannounced(b *testing.B) {
	for _, own := range []bool{false, true} {
		for _, relaxed := range []bool{false, true} {
			for _, n := range []int{1, 10, 100} {
				for _, p := range []placement.Policy{placement.Static, placement.Adaptive, placement.ReplicateAll} {
					b.Run(fmt.Sprintf("own=%v/relaxed=%v/keys=%d/%s", own, relaxed, n, p.Name()), func(b *testing.B) { unannounced(b, p, own, relaxed, n) })
				}
			}
		}
	}
}

func unannounced(b *testing.B, p placement.Policy, own, relaxed bool, n int) {
	const nodes, rows, dim = 4, 10_000, 16
	ctx := context.Background()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: dim, Relaxed: relaxed})
	if err != nil {
		b.Fatal(err)
	}
	c, err := Local(ctx, nodes, Config{Model: m, Workers: 1, Policy: p})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(ctx)
	work := func(w godwit.Worker, steps int, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, uint64(w.ID().Node)))
		zipf := rand.NewZipf(rng, 1.1, 1, rows-1)
		keys, vals := make([]godwit.Key, n), make([]float32, n*dim)
		for range steps {
			for i := range keys {
				k := zipf.Uint64() * 7919 % rows
				if own && rng.IntN(10) > 0 {
					k = k/nodes*nodes + uint64(w.ID().Node)
				}
				keys[i] = godwit.Key(k * 6007 % rows)
			}
			slices.Sort(keys)
			if err := w.Pull(ctx, keys, vals); err != nil {
				b.Error(err)
				return
			}
			if err := w.Push(ctx, keys, vals); err != nil {
				b.Error(err)
				return
			}
		}
	}
	all := func(steps int, seed uint64) {
		var wg sync.WaitGroup
		for _, n := range c.Nodes {
			wg.Go(func() { work(n.Worker(0), steps, seed) })
		}
		wg.Wait()
	}
	all(20_000/n+100, 1)
	before := sum(c)
	b.ResetTimer()
	all(b.N, 2)
	b.StopTimer()
	did := sum(c).Sub(before)
	b.ReportMetric(100*did.NoMessage(), "%local")
	b.ReportMetric(float64(did.Learned), "learned")
	b.ReportMetric(float64(did.Drops), "drops")
}
