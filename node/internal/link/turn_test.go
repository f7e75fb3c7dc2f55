package link

import (
	"testing"

	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// A busy world is crowded by two workers, and counts.
type busy struct {
	timed
	asked, yielded int
}

func (w *busy) Crowded(workers int) bool { w.asked++; return workers >= 2 }
func (w *busy) Yield()                   { w.yielded++ }

// A polled connection counts how often somebody looks what has arrived.
type polled struct {
	transport.InlineReader
	polls int
}

func (c *polled) Peer() transport.Hello { return wire.Hello{} }
func (c *polled) Poll()                 { c.polls++ }

// A worker looks at the network, and makes room, once in 50 µs for each peer, where workers keep all processors busy.
func TestAWorkerMakesRoomNowAndThen(t *testing.T) {
	w, c := &busy{timed: timed{World: host.Real(), now: 1}}, &polled{}
	ls := New(host.New(w), 0, 3, 1, host.Usual, filter.Compress{}, host.NewBell())
	ls.Connect(1, c)
	ls.Imagine(2, func() {}) // nobody can read that by turns
	var turn Turn
	for i, x := range []struct {
		pass    int64 // nanoseconds
		workers int
		asked   int // how often the world was asked by then
		given   int // how often the worker gave way
	}{{0, 2, 1, 1}, {0, 2, 1, 1}, {99_999, 2, 1, 1}, {1, 2, 2, 2}, {99_999, 2, 2, 2}, {1, 1, 3, 2}, {99_999, 2, 3, 2}, {1, 2, 4, 3}} {
		w.now += x.pass
		turn.Give(ls, x.workers)
		if w.asked != x.asked || c.polls != x.given || w.yielded != x.given {
			t.Errorf("step %d: asked %d times whether it is crowded, want %d; looked %d times at the network and gave way %d times, want %d", i, w.asked, x.asked, c.polls, w.yielded, x.given)
		}
	}
}

func TestAWorkerOfANodeThatIsAloneKeepsGoing(t *testing.T) {
	w := &busy{timed: timed{World: host.Real(), now: 1}}
	ls := New(host.New(w), 0, 1, 1, host.Usual, filter.Compress{}, host.NewBell())
	if new(Turn).Give(ls, 2); w.asked+w.yielded > 0 {
		t.Error("a worker gives way though there is no other node")
	}
}
