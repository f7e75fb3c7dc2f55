package node

import (
	"context"
	"errors"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/placement"
)

// What waits for clocks that the worker itself has to come to first keeps it
// from nothing else.
func TestAWorkerThatAsksFarAheadIsToldSoAndGoesOn(t *testing.T) {
	for what, x := range map[string]struct{ keys, most, asks int }{
		"many operations": {1, host.Usual.Ahead, host.Usual.Ops},
		"many keys":       {40, 100, 2},
	} {
		t.Run(what, func(t *testing.T) {
			m := modelOf(t, godwit.Table{Name: "t", Rows: 1000, Dim: 1, Staleness: godwit.Within(5)})
			c := local(t, 2, Config{Workers: 1, Model: m, Policy: placement.Static})
			w := c.Nodes[0].Worker(0)
			c.Nodes[0].ops.Most = int64(x.most)
			ctx, cancel := context.WithTimeout(background(t), patience)
			defer cancel()
			keys := homedAt(t, c.Nodes[0], 1, x.keys)
			v := make([]float32, len(keys))
			ask := func() (godwit.Handle, error) { return w.PullAfter(ctx, 1, keys, make([]float32, len(keys))) }
			var hs []godwit.Handle
			for range x.asks {
				h, err := ask()
				must(t, err)
				hs = append(hs, h)
			}
			if h, err := ask(); !errors.Is(err, godwit.ErrFull) || h != 0 {
				t.Fatalf("one more gave %v, %v", h, err)
			}
			must(t, w.Push(ctx, keys[:1], []float32{1}))
			must(t, w.Pull(ctx, keys, v))
			w.Advance()
			c.Nodes[1].Worker(0).Advance()
			must(t, w.Wait(ctx, hs...))
			h, err := w.PullAfter(ctx, 2, keys, v)
			must(t, err)
			w.Advance()
			c.Nodes[1].Worker(0).Advance()
			must(t, w.Wait(ctx, h))
			if o, all := c.Nodes[0].ops.Of(0), c.Nodes[0].ops; v[0] != 1 || o.Open() != 0 || o.UnderWay() != 0 || o.Ahead() != 0 || all.Ahead() != 0 {
				t.Errorf("reads %v, and %d operations and %d keys are left", v[0], o.Ahead(), all.Ahead())
			}
		})
	}
}
