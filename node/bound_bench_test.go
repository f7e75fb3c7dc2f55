package node

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// BenchmarkClock is a step of a worker that reads and pushes 16 keys of its node
// and advances, while the only worker of another node does the same: without a
// bound, far from it, and in lockstep (two messages of one way each).
func BenchmarkClock(b *testing.B) {
	for _, s := range []godwit.Bound{godwit.Eventual, godwit.Within(godwit.MaxBound), godwit.Within(100), godwit.BulkSynchronous} {
		b.Run(s.String(), func(b *testing.B) {
			m := modelOf(b, godwit.Table{Name: "t", Rows: 1000, Dim: 16, Staleness: s})
			c := local(b, 2, Config{Workers: 1, Policy: placement.Static, Model: m})
			ctx := background(b)
			before := sum(c)
			done := make(chan error, 2)
			step := func(n *Node, steps int) error {
				w, keys, v := n.Worker(0), homedAt(b, n, n.self, 16), make([]float32, 16*16)
				for range steps {
					if err := w.Pull(ctx, keys, v); err != nil {
						return err
					}
					if err := w.Push(ctx, keys, v); err != nil {
						return err
					}
					w.Advance()
				}
				return nil
			}
			b.ResetTimer()
			for _, n := range c.Nodes {
				go func() { done <- step(n, b.N) }()
			}
			for range c.Nodes {
				must(b, <-done)
			}
			b.StopTimer()
			after := sum(c).Sub(before)
			b.ReportMetric(float64(after.Frames)/float64(2*b.N), "frames/clock")
			b.ReportMetric(float64(after.SentBytes)/float64(2*b.N), "B/clock")
			b.ReportMetric(float64(after.Blocked)/float64(2*b.N), "waits/clock")
		})
	}
}
