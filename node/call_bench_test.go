package node

import (
	"testing"

	"github.com/godwit-ps/godwit"
)

// What a call costs beside its keys: one key of four floats, which is here.
func BenchmarkLocalCall(b *testing.B) {
	c := local(b, 1, Config{Model: modelOf(b, godwit.Table{Name: "t", Rows: 1000, Dim: 4}), Workers: 1})
	w, ctx := c.Nodes[0].Worker(0), background(b)
	keys, v := []godwit.Key{7}, make([]float32, 4)
	must(b, w.Push(ctx, keys, v))
	b.Run("Pull", func(b *testing.B) {
		for b.Loop() {
			if err := w.Pull(ctx, keys, v); err != nil { // must would take longer than the call
				b.Fatal(err)
			}
		}
	})
	b.Run("Push", func(b *testing.B) {
		for b.Loop() {
			if err := w.Push(ctx, keys, v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("PullIfLocal", func(b *testing.B) {
		for b.Loop() {
			if !w.PullIfLocal(7, v) {
				b.Fatal("not here")
			}
		}
	})
}
