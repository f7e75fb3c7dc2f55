package node

import (
	"testing"
	"time"

	"github.com/godwit-ps/godwit/internal/host"
)

// A peer that says that part of a long frame has come is alive, although it has
// acknowledged nothing and sent nothing else.
func TestAPartOfAFrameThatArrivesAtThePeerIsASignOfLife(t *testing.T) {
	n := &Node{links: unread(host.New(host.Real()), 1, 2)}
	sent(n.links.To(0), 1<<20)
	p := &pulse{n: n}
	var l life
	for _, x := range []struct {
		at    time.Duration
		part  bool
		since time.Duration
	}{{1 * time.Second, false, 0}, {2 * time.Second, true, 2 * time.Second}, {3 * time.Second, false, 2 * time.Second}} {
		p.clock = x.at
		l.partly.Store(x.part)
		p.measure(0, &l)
		if !l.owes || l.since != x.since {
			t.Errorf("at %v, part of a frame is %v: owes is %v since %v, want since %v", x.at, x.part, l.owes, l.since, x.since)
		}
	}
}
