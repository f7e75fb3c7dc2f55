package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// exchange hands frames to and fro between two virtual nodes until there are
// none.
func exchange(b *testing.B, nodes [2]*Node, buf []byte) []byte {
	for some := true; some; {
		some = false
		for i, n := range nodes {
			to := godwit.NodeID(1 - i)
			here, there := simulated{n}, simulated{nodes[to]}
			for buf = here.Frame(to, buf); len(buf) > 0; buf = here.Frame(to, buf) {
				some = true
				_, err := there.Handle(n.self, buf, true)
				must(b, err)
			}
			nodes[to].in[i].Flush()
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
			nodes := pair(b, Config{Model: model(b, uint64(x.rows), dim), Policy: placement.RelocateAll, Workers: 1}, func(from, to godwit.NodeID) {})
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

// BenchmarkMoveFloor is what a move cannot do without, in plain loops over as
// many keys: for each of the four records a place in an index, the head of a row
// and, but for the last, a line beside it are read and written, for two of them
// the row is copied, and so is the frame between. It reports processor time.
func BenchmarkMoveFloor(b *testing.B) {
	const dim, stride = 100, 6 + 100 // floats; the head takes 24 bytes
	type line [16]uint32
	for _, rows := range []int{10_000, 200_000} {
		b.Run(fmt.Sprintf("keys=10000/rows=%d", rows), func(b *testing.B) {
			const keys = 10_000
			var index [2][]uint32
			var row [2][]float32
			var beside [2][]line
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range 2 {
				index[i] = make([]uint32, rows+rows/4)
				for j, r := range rng.Perm(rows) {
					index[i][j] = uint32(r)
				}
				row[i] = make([]float32, rows*stride)
				beside[i] = make([]line, rows)
				for j := range beside[i] {
					beside[i][j][0] = 1
				}
			}
			all := rng.Perm(rows)
			frame, sent := make([]float32, keys*dim), make([]float32, keys*dim)
			var times []float64
			next, to := 0, 0
			for b.Loop() {
				part := all[next : next+keys]
				if next += keys; next == rows {
					next, to = 0, 1-to
				}
				before := used()
				touch := func(n, k int) []float32 { // what a record meets
					r := int(index[n][k])
					beside[n][r][0]++
					head := row[n][r*stride:][:stride]
					head[0]++
					return head[stride-dim:]
				}
				for _, k := range part {
					touch(to, k)
				}
				for i, k := range part {
					copy(frame[i*dim:][:dim], touch(1-to, k))
				}
				copy(sent, frame)
				for i, k := range part {
					copy(touch(to, k), sent[i*dim:][:dim])
				}
				for _, k := range part {
					touch(1-to, k)
				}
				for _, k := range part {
					row[to][int(index[to][k])*stride]++
				}
				times = append(times, float64(used()-before)/keys)
			}
			slices.Sort(times)
			b.ReportMetric(times[len(times)/10], "best-cpu-ns/move")
			b.ReportMetric(median(times), "cpu-ns/move")
			b.ReportMetric(0, "ns/op")
		})
	}
}
