package round

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
)

// Echoes tell a node how old its copies are: after a round it asks all other nodes, and each answers after a round of its
// own. By then what the node had sent has come to them, and what their rounds sent has come to it. It is a [Stage].
// Unlike a WaitSync, an echo has nothing sent that would not be sent anyway: it waits for no acknowledgment, copies that nobody is about
// to use stay as they are, and what the network had no room for comes later. Any goroutine may begin an echo.
type Echoes struct {
	ids     *atomic.Uint64
	links   *link.Links
	bell    *host.Bell
	waiting atomic.Int32 // workers that wait for one
	copies  bool         // the policy makes replicas, which may be old

	mu    preempt.Mutex
	next  *echo    // is asked for after the next round; nil: nobody wants one
	asked []*echo  // were, the oldest first: those that workers have under way
	marks []uint64 // by node: its last question, which waits for the next round; 0: none
	taken []uint64 // … for the round that goes on; of the goroutine of the rounds,
	began *echo    // … as is what next was when it began
}

func newEchoes(c *Config) *Echoes {
	n := c.Links.Nodes()
	return &Echoes{ids: c.IDs, links: c.Links, bell: c.Bell, copies: c.Copies && !c.Links.Alone(), marks: make([]uint64, n), taken: make([]uint64, n)}
}

// An echo is one question to all other nodes.
type echo struct {
	id      uint64
	answers []bool // by node
	missing int    // peers that have not answered
	done    chan struct{}
}

// join returns the echo that is asked for at the end of the next round, or of one that goes on.
func (e *Echoes) join() *echo {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.next == nil {
		n := e.links.Nodes()
		e.next = &echo{id: e.ids.Add(1), answers: make([]bool, n), missing: n - 1, done: make(chan struct{})}
		e.bell.Ring()
	}
	return e.next
}

// Await has rounds follow each other, as a worker waits for an echo, until it calls what is returned.
func (e *Echoes) Await() (end func()) {
	e.waiting.Add(1)
	e.bell.Ring()
	e.bell.Hurry()
	return func() { e.waiting.Add(-1) }
}

// Open is that of a Stage.
func (e *Echoes) Open(*link.Sender) (press bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, op := range e.marks {
		e.taken[i], e.marks[i] = max(e.taken[i], op), 0
	}
	e.began = e.next
	return false
}

// Close is that of a Stage. It answers, and asks.
func (e *Echoes) Close(out *link.Sender, sent, _ bool) (more bool) {
	if !sent {
		return e.began != nil || slices.ContainsFunc(e.taken, func(op uint64) bool { return op != 0 })
	}
	for i, op := range e.taken {
		if e.taken[i] = 0; op != 0 {
			out.Send(godwit.NodeID(i), &wire.Record{Kind: wire.RoundDone, Op: op})
		}
	}
	if e.began == nil {
		return false
	}
	e.mu.Lock()
	e.asked, e.next = append(e.asked, e.began), nil
	e.mu.Unlock()
	for peer := range e.links.All {
		out.Send(peer, &wire.Record{Kind: wire.RoundMark, Op: e.began.id})
	}
	e.began = nil
	return false
}

// Urgent is that of a Stage.
func (e *Echoes) Urgent() bool { return e.waiting.Load() > 0 }

// Marked takes a peer's question. An answer to it is one to those that the peer asked before.
func (e *Echoes) Marked(from godwit.NodeID, op uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.marks[from] = max(e.marks[from], op)
	e.bell.Ring()
}

// Answered takes a peer's answer. One that nobody waits for does nothing.
func (e *Echoes) Answered(from godwit.NodeID, op uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = slices.DeleteFunc(e.asked, func(x *echo) bool {
		if x.id > op || x.answers[from] {
			return false
		}
		x.answers[from] = true
		if x.missing--; x.missing > 0 {
			return false
		}
		close(x.done)
		return true
	})
}

// behind returns a peer that has not answered; godwit.NoNode if there is none, or nobody was asked.
func (e *Echoes) behind(x *echo) godwit.NodeID {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Contains(e.asked, x) {
		for i, ok := range x.answers {
			if id := godwit.NodeID(i); !ok && id != e.links.Self {
				return id
			}
		}
	}
	return godwit.NoNode
}

// Pending returns how many echoes have not come, and how many nodes wait for an answer.
func (e *Echoes) Pending() (echoes, nodes int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if echoes = len(e.asked); e.next != nil {
		echoes++
	}
	for _, op := range e.marks {
		if op != 0 {
			nodes++
		}
	}
	return echoes, nodes
}

// An Age bounds how many steps a worker makes while nothing comes from other nodes ([godwit.Worker].BoundAge): it begins echoes every few
// steps, and waits when it has made too many steps since the last one that has come began. It belongs to the worker's
// goroutine. The zero Age has no bound.
type Age struct {
	echoes *Echoes
	most   godwit.Clock // steps; 0: any
	since  godwit.Clock // the last echo that has come was begun at this clock of the worker
	under  []begun      // the others, the oldest first
}

// A begun echo was so at a clock of the worker.
type begun struct {
	*echo
	at godwit.Clock
}

// underWay is how many echoes of a worker are under way at the most. So the last one that has come is, by the time that an echo
// takes, and by a part in as many of the bound, older than the present step.
const underWay = 8

// Bound sets the bound, from a clock of the worker on; 0 or less: there is none.
func (a *Age) Bound(e *Echoes, most, clock godwit.Clock) {
	if a.most == 0 {
		a.since, a.under = clock, a.under[:0]
	}
	if a.echoes, a.most = e, min(max(0, most), godwit.Forever/2); !e.copies {
		a.most = 0
	}
}

// Advanced is told of the worker's clock.
func (a *Age) Advanced(clock godwit.Clock) {
	if a.most == 0 {
		return
	}
	a.look()
	last := a.since
	if n := len(a.under); n == underWay {
		return
	} else if n > 0 {
		last = a.under[n-1].at
	}
	if clock-last >= (a.most+underWay-1)/underWay {
		a.begin(clock)
	}
}

// begin begins an echo at a clock of the worker.
func (a *Age) begin(clock godwit.Clock) <-chan struct{} {
	x := begun{a.echoes.join(), clock}
	a.under = append(a.under, x)
	return x.done
}

// look sees which echoes have come.
func (a *Age) look() {
	n := 0
	for ; n < len(a.under) && a.under[n].come(); n++ {
		a.since = a.under[n].at
	}
	a.under = slices.Delete(a.under, 0, n)
}

// come reports whether all have answered.
func (x *echo) come() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// Over returns what the worker has to wait for at a clock before it reads, and then ask again; nil: it need not wait.
func (a *Age) Over(clock godwit.Clock) <-chan struct{} {
	if a.most == 0 || clock-a.since <= a.most {
		return nil
	}
	if a.look(); clock-a.since <= a.most {
		return nil
	}
	for _, x := range a.under { // those that began earlier come earlier
		if clock-x.at <= a.most {
			return x.done
		}
	}
	// The bound was narrowed: none that is under way suffices.
	if len(a.under) == underWay {
		return a.under[0].done
	}
	return a.begin(clock)
}

// Behind says what the worker waits for, and for which node; godwit.NoNode: for this one.
func (a *Age) Behind() (what string, peer godwit.NodeID) {
	since := a.since
	for _, x := range a.under {
		if !x.come() {
			if peer = a.echoes.behind(x.echo); peer != godwit.NoNode {
				return fmt.Sprintf("waiting for a sync round of node %d since clock %d: ", peer, x.at), peer
			}
			since = x.at
			break
		}
	}
	return fmt.Sprintf("waiting for a sync round of this node since clock %d: ", since), godwit.NoNode
}
