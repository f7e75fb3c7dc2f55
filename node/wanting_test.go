package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// A read that waits for a clock in vain leaves nobody waiting.
func TestAReadThatIsGivenUpWaitsNoLonger(t *testing.T) {
	c := local(t, 2, Config{Workers: 2, Model: bounded(t, 4, 0), Policy: placement.Static})
	n := c.Nodes[0]
	w := n.Worker(0)
	w.Advance()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := w.Pull(short, []godwit.Key{0}, make([]float32, 4)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a read before anybody else has a clock: %v", err)
	}
	if _, waits := n.bound.Waits(n.bound.Waiter(0)); waits {
		t.Error("the worker waits still")
	}
}

// A pull that is asked for early is kept from its worker's own pushes by no less
// than any other: the window comes first.
func TestAPullThatIsAskedForEarlyWaitsForItsWindow(t *testing.T) {
	g := newGate()
	m := modelOf(t, godwit.Table{Name: "t", Rows: 1000, Dim: 2, Staleness: godwit.Within(5), Window: godwit.Within(0)})
	c := clusterOver(t, 2, Config{Model: m, Policy: placement.Static, Workers: 1}, g.place)
	w := c.Nodes[0].Worker(0)
	keys := homedAt(t, c.Nodes[0], 1, 1)
	g.shut(1)
	h, err := w.PushAsync(t.Context(), keys, []float32{10, 0})
	must(t, err)
	w.Advance()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = w.PullAfter(short, 0, keys, make([]float32, 2))
	g.open(1)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "window") {
		t.Errorf("a pull behind a push that is not answered: %v", err)
	}
	must(t, w.Wait(t.Context(), h))
}
