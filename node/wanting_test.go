package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node/internal/tick"
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
	n.bound.mu.Lock()
	defer n.bound.mu.Unlock()
	if len(n.bound.waiting) != 0 {
		t.Errorf("%d workers wait still", len(n.bound.waiting))
	}
}

// Who is behind: a worker, or the way of what its node has pushed. The bound has no
// pacer here, which would read what the test writes.
func TestWhoHoldsUpOthersIsNamed(t *testing.T) {
	need := tick.First(0).At(1)
	for flying, want := range map[bool]string{true: "updates of node 1 are on their way", false: "1.0 is at clock 0"} {
		b := &bound{n: &Node{}, nodes: []standing{{settled: need}, {settled: tick.First(0), flying: flying}}}
		if who, peer := b.behind(need); peer != 1 || !strings.Contains(who, want) {
			t.Errorf("updates under way: %v: %q, node %d is named", flying, who, peer)
		}
	}
}

// A node owes others something if somebody waits for more than it has settled, and
// its workers are farther.
func TestANodeOwesWhatSomebodyWaitsForAndItsWorkersAllow(t *testing.T) {
	b := &bound{clocks: tick.NewClocks(0, 1, 0)}
	at := func(c godwit.Clock) uint64 { return uint64(tick.First(0).At(c)) }
	for b.clocks[0].Advance(); b.clocks[0].Now() <= 5; b.clocks[0].Advance() {
		b.clocks[0].Follow()
	}
	for _, x := range []struct {
		settled, wanted godwit.Clock
		owes            bool
	}{{3, 3, false}, {3, 2, false}, {3, 4, true}, {4, 9, true}, {5, 9, false}} {
		b.settled.Store(at(x.settled))
		b.wanted.Store(at(x.wanted))
		if got := b.owes(); got != x.owes {
			t.Errorf("settled %d, wanted %d, worker at 5: owes is %v", x.settled, x.wanted, got)
		}
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
