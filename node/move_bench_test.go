package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/protocol/placement"
)

// exchange hands frames to and fro between two virtual nodes until there are
// none.
func exchange(b *testing.B, nodes [2]*Node, buf []byte) []byte {
	for some := true; some; {
		some = false
		for i, n := range nodes {
			to := godwit.NodeID(1 - i)
			for buf = n.Frame(to, buf); len(buf) > 0; buf = n.Frame(to, buf) {
				some = true
				_, err := nodes[to].Handle(n.self, buf, true)
				must(b, err)
			}
			nodes[to].in[i].out.flush()
		}
	}
	return buf
}

// BenchmarkMovePath is Localize of random keys of 100 floats, back and forth,
// without the network between: what the nodes themselves do for it. It reports
// processor time, also that of the best tenth of the turns, which other load
// hardly touches.
func BenchmarkMovePath(b *testing.B) {
	const dim = 100
	for _, x := range []struct{ keys, rows int }{{10_000, 10_000}, {10_000, 200_000}, {1000, 200_000}} {
		b.Run(fmt.Sprintf("keys=%d/rows=%d", x.keys, x.rows), func(b *testing.B) {
			nodes := pair(b, Config{Model: model(b, uint64(x.rows), dim), Policy: placement.RelocateAll, Workers: 1}, func(*Node, godwit.NodeID) {})
			ctx := context.Background()
			all := make([]godwit.Key, x.rows)
			for i, k := range rand.New(rand.NewPCG(1, 2)).Perm(x.rows) {
				all[i] = godwit.Key(k)
			}
			to, next := 1, 0
			var buf []byte
			move := func() float64 {
				w := nodes[to].Worker(0)
				before := used()
				h, err := w.LocalizeAsync(ctx, all[next:next+x.keys])
				must(b, err)
				buf = exchange(b, nodes, buf)
				must(b, w.Wait(ctx, h))
				took := used() - before
				if next += x.keys; next == len(all) {
					next, to = 0, 1-to
				}
				return float64(took) / float64(x.keys)
			}
			for to == 1 { // all keys, once: what grows has grown
				move()
			}
			var times []float64
			for b.Loop() {
				times = append(times, move())
			}
			slices.Sort(times)
			b.ReportMetric(times[len(times)/10], "best-cpu-ns/move")
			b.ReportMetric(median(times), "cpu-ns/move")
			b.ReportMetric(0, "ns/op")
		})
	}
}
