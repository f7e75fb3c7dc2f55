package node

import (
	"context"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// A table of a million rows, half of it at another node over TCP, is read as the
// keys in use and their rows, and read and written as a range, which is compared
// with calls of all keys and of one.
func BenchmarkWholeTable(b *testing.B) {
	const rows, dim = 1 << 20, 4
	c := clusterOver(b, 2, Config{Model: model(b, rows, dim), Policy: placement.Static, Workers: 1}, overTCP)
	w := c.Nodes[0].Worker(0)
	ctx := context.Background()
	var tenth []godwit.Key
	keys := make([]godwit.Key, rows)
	for k := range keys {
		keys[k] = godwit.Key(k)
		if k%10 == 0 {
			tenth = append(tenth, keys[k])
		}
	}
	vals := make([]float32, rows*dim)
	must(b, w.Push(ctx, tenth, vals[:len(tenth)*dim]))
	perRow := func(b *testing.B, rows int, do func() error) {
		b.ReportAllocs()
		for b.Loop() {
			must(b, do())
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
	}
	b.Run("scan of a tenth", func(b *testing.B) {
		perRow(b, len(tenth), func() error {
			for _, err := range w.Scan(ctx, 0, rows, godwit.NoNode) {
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
	b.Run("rows of a tenth", func(b *testing.B) {
		perRow(b, len(tenth), func() error {
			for _, err := range godwit.Rows(ctx, w, 0, rows, godwit.NoNode) {
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
	must(b, w.Push(ctx, keys, vals))
	b.Run("scan of all", func(b *testing.B) {
		perRow(b, rows, func() error {
			for _, err := range w.Scan(ctx, 0, rows, godwit.NoNode) {
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
	for what, x := range map[string]struct{ subject, baseline func() }{
		"pull of the range, to one call": {func() { must(b, godwit.PullRange(ctx, w, 0, rows, vals)) }, func() { must(b, w.Pull(ctx, keys, vals)) }},
		"push of the range, to one call": {func() { must(b, godwit.PushRange(ctx, w, 0, rows, vals)) }, func() { must(b, w.Push(ctx, keys, vals)) }},
	} {
		b.Run(what, func(b *testing.B) {
			var d duel
			for b.Loop() {
				d.turn(x.subject, x.baseline)
			}
			d.report(b, rows, "row")
		})
	}
	b.Run("pull of the range, to calls of one key", func(b *testing.B) {
		var d duel
		const some = 1 << 12
		for b.Loop() {
			d.turn(func() { must(b, godwit.PullRange(ctx, w, 0, some, vals[:some*dim])) }, func() {
				for k := range some {
					must(b, w.Pull(ctx, keys[k:k+1], vals[:dim]))
				}
			})
		}
		d.report(b, some, "row")
	})
}
