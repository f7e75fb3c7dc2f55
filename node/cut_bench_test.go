package node

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/optim"
)

// How long workers' steps take while cuts are made one after the other, beside none: a step
// pushes 16 rows of 100,000, of 256 bytes with their state.
func BenchmarkCut(b *testing.B) {
	for _, x := range []struct {
		name string
		cuts bool
	}{{"Without", false}, {"With", true}} {
		b.Run(x.name, func(b *testing.B) {
			const rows, batch = 100_000, 16
			m := modelOf(b, godwit.Table{Name: "t", Rows: rows, Dim: 32, Rule: optim.AdaGrad{LR: 0.1}})
			c := local(b, 2, Config{Model: m, Workers: 1})
			ctx := background(b)
			var over atomic.Bool
			var steps [][]time.Duration
			var mu sync.Mutex
			var wg sync.WaitGroup
			for _, n := range c.Nodes {
				wg.Go(func() {
					mine := stepsUntil(ctx, b, n, batch, &over)
					mu.Lock()
					defer mu.Unlock()
					steps = append(steps, mine)
				})
			}
			var bytes, kept uint64
			var longest time.Duration
			for i := 0; b.Loop(); i++ {
				if !x.cuts {
					time.Sleep(20 * time.Millisecond)
					continue
				}
				var cut sync.WaitGroup
				for _, n := range c.Nodes {
					cut.Go(func() {
						s, err := n.Cut(ctx, uint64(i+1), WholeCut, func(int, []uint64, []float32) error { return nil })
						if err != nil {
							b.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						bytes, kept, longest = bytes+s.Bytes, kept+s.Kept, max(longest, s.Longest)
					})
				}
				cut.Wait()
			}
			over.Store(true)
			wg.Wait()
			all := slices.Concat(steps...)
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)*999/1000])/1e6, "ms/999th")
			b.ReportMetric(float64(all[len(all)-1])/1e6, "ms/longest")
			if x.cuts {
				b.ReportMetric(float64(bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
				b.ReportMetric(float64(kept)/float64(b.N), "kept/op")
				b.ReportMetric(float64(longest)/1e6, "ms/crossing")
			}
		})
	}
}

// stepsUntil makes steps by a node's worker and returns how long each took.
func stepsUntil(ctx context.Context, b *testing.B, n *Node, batch int, over *atomic.Bool) (took []time.Duration) {
	w := n.Worker(0)
	defer w.(godwit.Cutter).Rest()
	rng := rand.New(rand.NewPCG(1, uint64(n.self)))
	keys, push := make([]godwit.Key, batch), make([]float32, batch*32)
	for i := range push {
		push[i] = rng.Float32() - 0.5
	}
	for !over.Load() {
		for i := range keys {
			keys[i] = godwit.Key(rng.Uint64N(w.Model().Keys()))
		}
		began := time.Now()
		if err := w.Push(ctx, keys, push); err != nil {
			b.Error(err)
			return took
		}
		w.Advance()
		took = append(took, time.Since(began))
	}
	return took
}
