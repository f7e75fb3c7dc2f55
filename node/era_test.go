package node

import (
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// Clocks are counted from the barrier on, whatever a worker did between Finish and
// there: it is waited for like any other.
func TestClocksBetweenFinishAndTheBarrierDoNotCountAfterIt(t *testing.T) {
	c := local(t, 2, Config{Workers: 1, Model: bounded(t, 2, 0), Policy: placement.Static})
	ctx := background(t)
	w, early := c.Nodes[0].Worker(0), c.Nodes[1].Worker(0)
	early.Finish()
	for range 3 {
		early.Advance()
	}
	entered := make(chan error, 1)
	go func() { entered <- early.Barrier(ctx) }()
	must(t, w.Barrier(ctx))
	must(t, <-entered)
	if at := early.Clock(); at != 3 {
		t.Errorf("the worker is at clock %d, want 3", at)
	}

	h, err := early.PullAfter(ctx, 4, []godwit.Key{1}, make([]float32, 2))
	must(t, err)
	w.Advance()
	v, read := make([]float32, 2), make(chan error, 1)
	go func() { read <- w.Pull(ctx, []godwit.Key{1}, v) }()
	for !heldUp(c.Nodes[0], 0) {
		select {
		case err := <-read:
			t.Fatalf("read %v (error %v) at clock 1 after a barrier that another worker has made no step since", v, err)
		default:
		}
	}
	must(t, early.Push(ctx, []godwit.Key{1}, []float32{0, 1}))
	early.Advance()
	must(t, <-read)
	if !slices.Equal(v, []float32{0, 1}) {
		t.Errorf("reads %v, without what was pushed one clock before", v)
	}
	must(t, early.Wait(ctx, h))
}
