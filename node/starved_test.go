package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// When there is no more memory, nothing makes rows any more, calls say so, and the
// others hear of it.
func TestANodeWithoutMemoryForRowsEndsTheRunInWords(t *testing.T) {
	c := local(t, 2, Config{Model: model(t, 40_000, 8), Policy: placement.Static, Workers: 1})
	n, w := c.Nodes[0], c.Nodes[0].Worker(0)
	here, there := homedAt(t, n, 0, 200), homedAt(t, n, 1, 200)
	dst := make([]float32, 8*200)
	must(t, w.Pull(t.Context(), here[:1], dst[:8]))
	full := errors.New("full")
	n.arena.Short(3<<30, full)
	rows := func() int { return n.rows.Totals().Rows }
	before := rows()
	for what, err := range map[string]error{
		"a pull of what is here":  w.Pull(t.Context(), here, dst),
		"a push":                  w.Push(t.Context(), here, dst),
		"a pull of what is there": w.Pull(t.Context(), there, dst),
	} {
		if !errors.Is(err, godwit.ErrMemory) || !errors.Is(err, full) || !strings.Contains(err.Error(), "3 GiB of rows") {
			t.Errorf("%s: %v", what, err)
		}
	}
	a := n.rows.Access()
	for _, kind := range []wire.Kind{wire.Pull, wire.Push} {
		if a.Serve(kind, here[1:2], dst[:8]) {
			t.Errorf("a row was made by a %v", kind)
		}
	}
	if got := rows(); got != before {
		t.Errorf("%d rows are here, %d were", got, before)
	}
	<-c.Nodes[1].Done()
	if err := c.Nodes[1].Err(); !errors.Is(err, godwit.ErrPeerLost) || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("the other node ended with %v", err)
	}
}

// When nearly as many keys of a shard as may be are copied, the run ends in the same way.
func TestANodeWithTooManyCopiedKeysInAShardEndsTheRunInWords(t *testing.T) {
	c := local(t, 1, Config{Model: model(t, 40_000, 8), Workers: 1})
	n := c.Nodes[0]
	n.proto.SidesFull(1 << 20)
	err := n.Worker(0).Pull(t.Context(), []godwit.Key{5}, make([]float32, 8))
	for _, says := range []string{"1048576 keys that are copied", fmt.Sprint("modulo ", n.rows.Shards())} {
		if !errors.Is(err, godwit.ErrMemory) || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v, want ErrMemory that says %q", err, says)
		}
	}
}

// When a shard is nearly full, nothing makes rows any more, and calls say of which keys there are too many.
func TestANodeWithTooManyRowsInAShardEndsTheRunInWords(t *testing.T) {
	c := local(t, 1, Config{Model: model(t, 40_000, 8), Workers: 1})
	n := c.Nodes[0]
	n.proto.RowsFull(1<<20, 8)
	n.proto.RowsFull(1<<20, 9) // another shard
	err := n.Worker(0).Pull(t.Context(), []godwit.Key{5}, make([]float32, 8))
	for _, says := range []string{"1048576 rows of 8 floats", fmt.Sprint("modulo ", n.rows.Shards()), "(there are 1)"} {
		if !errors.Is(err, godwit.ErrMemory) || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v, want ErrMemory that says %q", err, says)
		}
	}
	if got := n.rows.Totals().Rows; got != 0 {
		t.Errorf("%d rows were made", got)
	}
}
