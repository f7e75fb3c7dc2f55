package round

import (
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/shards"
)

// WaitSync is the calls of that name of a node's workers, and what other nodes ask for
// theirs. First this node's updates go out and are acknowledged, then every peer sends
// what is new and says so. Any goroutine may begin one; the rounds move them on.
type WaitSync struct {
	ids   *atomic.Uint64
	links *link.Links
	rows  *shards.Set
	bell  *host.Bell

	waiting atomic.Int32 // calls that are not done

	mu    preempt.Mutex
	calls []*call
	marks []mark // peers that want to hear when they have everything
}

// A call is one WaitSync of this node.
type call struct {
	id      uint64
	flush   shards.Flush // nil: not begun
	asked   bool
	missing int // peers that have not answered
	done    chan struct{}
}

type mark struct {
	from godwit.NodeID
	op   uint64
}

// Begin begins a WaitSync, and returns what is closed at its end.
func (y *WaitSync) Begin() <-chan struct{} {
	d := &call{done: make(chan struct{})}
	y.mu.Lock()
	d.id = y.ids.Add(1)
	y.calls = append(y.calls, d)
	y.mu.Unlock()
	y.waiting.Add(1)
	y.bell.Ring()
	y.bell.Hurry()
	return d.done
}

// Waiting reports whether a WaitSync of this node goes on.
func (y *WaitSync) Waiting() bool { return y.waiting.Load() > 0 }

// Open returns how many calls go on here, and how many nodes wait to hear that they have
// everything.
func (y *WaitSync) Open() (calls, nodes int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return max(len(y.calls), int(y.waiting.Load())), len(y.marks)
}

// Marked takes a peer's SyncMark.
func (y *WaitSync) Marked(from godwit.NodeID, op uint64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.marks = append(y.marks, mark{from, op})
	y.bell.Ring()
	y.bell.Hurry()
}

// Acknowledged takes a peer's SyncAck.
func (y *WaitSync) Acknowledged(op uint64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for i, d := range y.calls {
		if d.id == op && d.asked {
			if d.missing--; d.missing == 0 {
				y.calls = append(y.calls[:i], y.calls[i+1:]...)
				y.waiting.Add(-1)
				close(d.done)
			}
			return
		}
	}
}

// take returns the peers that want to hear when they have everything.
func (y *WaitSync) take() []mark {
	y.mu.Lock()
	defer y.mu.Unlock()
	marks := y.marks
	y.marks = nil
	return marks
}

// answer tells the peers of marks that they have everything. If something had to stay, they
// go on waiting.
func (y *WaitSync) answer(out *link.Sender, marks []mark, held bool) {
	if !held {
		for _, m := range marks {
			out.Send(m.from, &wire.Record{Kind: wire.SyncAck, Op: m.op})
		}
		return
	}
	y.mu.Lock()
	y.marks = append(y.marks, marks...)
	y.mu.Unlock()
}

// goOn moves the calls on. It returns how many updates of replicas it looked at.
func (y *WaitSync) goOn(out *link.Sender) (looks int) {
	if !y.Waiting() {
		return 0
	}
	y.mu.Lock()
	calls := slices.Clone(y.calls)
	y.mu.Unlock()
	var flush shards.Flush // of the calls that begin in this round: a node's workers mostly wait at the same time
	for _, d := range calls {
		if d.asked {
			continue
		}
		if d.flush == nil {
			if flush == nil {
				flush = y.rows.BeginFlush()
				looks = flush.Len()
			}
			d.flush = flush
		}
		if !d.flush.Arrived() {
			continue
		}
		d.asked = true
		y.mu.Lock()
		d.missing = y.links.Nodes() - 1
		y.mu.Unlock()
		for peer := range y.links.All {
			out.Send(peer, &wire.Record{Kind: wire.SyncMark, Op: d.id})
		}
	}
	return looks
}
