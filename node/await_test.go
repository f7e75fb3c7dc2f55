package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// Who waits in slices loses nothing by it: the operation goes on between them.
func TestAwaitDoesNotGiveAnOperationUp(t *testing.T) {
	g := newGate()
	c := clusterOver(t, 2, Config{Model: lengths(t), Workers: 1, Policy: placement.Static}, g.place)
	w := c.Nodes[0].Worker(0).(godwit.Awaiter)
	there := homedAt(t, c.Nodes[0], 1, 20)
	ctx := background(t)
	g.shut(1)
	dst := valuesOf(w.Model(), there)
	ones := valuesOf(w.Model(), there)
	for i := range ones {
		ones[i] = 1
	}
	var hs []godwit.Handle
	h, err := w.PushAsync(ctx, there, ones)
	must(t, err)
	hs = append(hs, h)
	h, err = w.PullAsync(ctx, there, dst)
	must(t, err)
	hs = append(hs, h)
	for range 3 {
		for i, h := range hs {
			slice, end := context.WithTimeout(ctx, time.Millisecond)
			over, err := w.Await(slice, h)
			end()
			if over || err != nil {
				t.Fatalf("operation %d of a node that reads nothing: over %v, %v", i, over, err)
			}
		}
	}
	g.open(1)
	for i, h := range hs {
		for over := false; !over; {
			slice, end := context.WithTimeout(ctx, time.Millisecond)
			over, err = w.Await(slice, h)
			end()
			must(t, err)
		}
		if over, err := w.Await(ctx, h); !over || err != nil {
			t.Errorf("operation %d, waited for again: %v, %v", i, over, err)
		}
	}
	if over, err := w.Await(ctx, 0); !over || err != nil {
		t.Errorf("nothing, waited for: %v, %v", over, err)
	}
	if over, err := w.Await(ctx, 1<<62|77); !over || !errors.Is(err, godwit.ErrHandle) {
		t.Errorf("a handle of nobody: %v, %v", over, err)
	}
	off := 0
	for _, k := range there {
		dim := w.Model().Dim(k)
		for i := range dim {
			if want := float32(10*int(k) + i + 1); dst[off+i] != want {
				t.Fatalf("key %d: float %d is %v, want %v: the pull was given up, or came before the push", k, i, dst[off+i], want)
			}
		}
		off += dim
	}
}

// A wait that ends with the run says why, in slices too.
func TestAwaitEndsWithTheRun(t *testing.T) {
	g := newGate()
	c := clusterOver(t, 2, Config{Model: lengths(t), Workers: 1, Policy: placement.Static}, g.place)
	w := c.Nodes[0].Worker(0).(godwit.Awaiter)
	there := homedAt(t, c.Nodes[0], 1, 1)
	g.shut(1)
	h, err := w.PullAsync(background(t), there, valuesOf(w.Model(), there))
	must(t, err)
	c.Hub.Kill(1)
	if over, err := w.Await(background(t), h); !over || !errors.Is(err, godwit.ErrPeerLost) {
		t.Errorf("over %v, %v, want an error of a lost node", over, err)
	}
	g.open(1)
	_ = c.Close(background(t)) // which says that node 1 was lost
}

// What the worker itself holds up is not over, and may be waited for later: its buffer is in use until then.
func TestWhatCannotBeAwaitedYetIsUnderWay(t *testing.T) {
	c := local(t, 1, Config{Model: bounded(t, 1, 1), Workers: 1})
	ctx, w := background(t), c.Nodes[0].Worker(0).(godwit.Awaiter)
	v := []float32{-1}
	h, err := w.PullAfter(ctx, 1, []godwit.Key{0}, v)
	must(t, err)
	if over, err := w.Await(ctx, h); over || !errors.Is(err, godwit.ErrBound) {
		t.Errorf("before its clock: over %v, %v, want %v and an operation under way", over, err, godwit.ErrBound)
	}
	must(t, w.Push(ctx, []godwit.Key{0}, []float32{3}))
	w.Advance()
	if over, err := w.Await(ctx, h); !over || err != nil || v[0] != 3 {
		t.Errorf("at its clock: over %v, %v, reads %v, want 3", over, err, v)
	}
}

// Unhindered tells of a worker that has as much under way as it may, before a call waits.
func TestACallThatWouldWaitIsKnownBefore(t *testing.T) {
	g := newGate()
	c := clusterOver(t, 2, Config{Model: modelOf(t, godwit.Table{Name: "t", Rows: 20_000, Dim: 1000}), Workers: 1, Policy: placement.Static}, g.place)
	w := c.Nodes[0].Worker(0).(godwit.Awaiter)
	there := homedAt(t, c.Nodes[0], 1, 1000)
	if !w.Unhindered(len(there)) || w.Unhindered(1_000_000) {
		t.Errorf("a call of %d keys may wait: %v; one of a million, 4 GB, may not: %v", len(there), !w.Unhindered(len(there)), w.Unhindered(1_000_000))
	}
	g.shut(1)
	defer g.open(1)
	ctx, end := context.WithTimeout(background(t), 10*time.Second)
	defer end()
	for w.Unhindered(len(there)) {
		if _, err := w.PullAsync(ctx, there, make([]float32, 1000*len(there))); err != nil {
			t.Fatalf("a call that was said not to wait: %v", err)
		}
	}
}
