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

// BenchmarkStaleness is eight nodes of one worker at 10 Gbit/s whose steps take
// 1 ms, or half as much more or less, and read and push 50 of 2000 keys each,
// announced two steps ahead. It reports, for each bound, the virtual time of a
// step, the share of it spent waiting for slower workers, frames and bytes a step
// and worker, and how many steps a read lacked at the most and on average.
func BenchmarkStaleness(b *testing.B) {
	for _, policy := range []string{"static", "replicate", "adaptive", "stale"} {
		bounds := []godwit.Bound{godwit.Eventual, godwit.Within(0), godwit.Within(1), godwit.Within(2), godwit.Within(4), godwit.Within(8)}
		for _, s := range bounds {
			b.Run(fmt.Sprintf("%s/%v", policy, s), func(b *testing.B) {
				for b.Loop() {
					r, waited, steps := stepping(b, policy, s)
					b.ReportMetric(float64(r.Elapsed.Microseconds())/steps, "virtual-µs/step")
					b.ReportMetric(100*waited, "%waiting")
					b.ReportMetric(float64(r.Frames)/steps/8, "frames/step")
					b.ReportMetric(float64(r.Bytes)/steps/8, "B/step")
				}
			})
		}
	}
}

func stepping(b *testing.B, policy string, s godwit.Bound) (r *Result, waited, steps float64) {
	const nodes, rows, read, n = 8, 2000, 50, 300
	p, err := placement.ByName(policy)
	if err != nil {
		b.Fatal(err)
	}
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: 8, Staleness: s})
	if err != nil {
		b.Fatal(err)
	}
	network, err := NetworkNamed("10g")
	if err != nil {
		b.Fatal(err)
	}
	c, err := New(Config{Nodes: nodes, Workers: 1, Seed: 1, Model: m, Policy: p, Network: network,
		Compute: Compute{Step: time.Millisecond, Spread: 0.5, Key: 100 * time.Nanosecond, Frame: 5 * time.Microsecond, Record: 200 * time.Nanosecond, Round: 200 * time.Nanosecond}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	r, err = c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		rng := rand.New(rand.NewPCG(1, uint64(w.ID().Node)))
		draw := func() []godwit.Key {
			keys := make([]godwit.Key, read)
			for i := range keys {
				keys[i] = godwit.Key(rng.Uint64N(rows))
			}
			return keys
		}
		next := [][]godwit.Key{draw(), draw()}
		v := make([]float32, 8*read)
		for range n {
			next = append(next, draw())
			if err := w.Intent(next[2], w.Clock()+2, w.Clock()+3); err != nil {
				return err
			}
			if err := w.Pull(ctx, next[0], v); err != nil {
				return err
			}
			if _, err := w.PushAsync(ctx, next[0], v); err != nil {
				return err
			}
			w.Advance()
			next = next[1:]
		}
		return w.Barrier(ctx)
	})
	if err != nil {
		b.Fatal(err)
	}
	sum := r.Sum()
	return r, float64(sum.BlockedTime) / float64(nodes*r.Elapsed), n
}
