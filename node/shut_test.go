package node

import (
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// An access that is going on while the rows go does not say that it was served.
func TestAnAccessThatFindsTheRowsGoneFails(t *testing.T) {
	ctx := background(t)
	c := local(t, 2, Config{Model: model(t, 40, 1), Policy: placement.Static, Workers: 1})
	n := c.Nodes[0]
	w := n.Worker(0)
	keys := homedAt(t, n, 0, 3)
	must(t, w.Push(ctx, keys, make([]float32, 3)))
	n.rows.Close() // as Close does, behind the worker's look whether the node is open
	if err := w.Push(ctx, keys, make([]float32, 3)); err == nil {
		t.Error("a push to rows that are gone was served")
	}
	if err := w.Set(ctx, keys, make([]float32, 3)); err == nil {
		t.Error("a set of rows that are gone was served")
	}
	fresh := slices.DeleteFunc(homedAt(t, n, 0, 6), func(k godwit.Key) bool { return slices.Contains(keys, k) })
	if err := w.Pull(ctx, fresh, make([]float32, len(fresh))); err == nil {
		t.Error("a pull of rows that are gone was served")
	}
}
