package staleness

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// A pull that depends on a tick (godwit.Worker.PullAfter) is what Li et al. (OSDI 2014,
// section 3.4) call a dependency: the receiver runs the request when what it depends on
// is finished. Here that is a tick that all nodes have settled, so no node has to say more
// than it says anyway. A key that is not here is asked for at once, and the first node
// that the request comes to keeps it; when its time has come it is a pull like any other,
// which finds the key wherever that has moved meanwhile. On its way there it still has its
// tick: it may come back to who asked, who has a replica by then that lacks something.

// parking is the pulls that came too early. But for parked, it is under the bound's lock.
type parking struct {
	parked  atomic.Uint64 // how many came
	most    int           // of one node
	waiting []early
	of      []int     // … how many of each node,
	soonest tick.Tick // … and a tick that none of them waits for less than
}

// Parked returns how many pulls came too early so far.
func (b *Bound) Parked() uint64 {
	if b == nil {
		return 0
	}
	return b.pulls.parked.Load()
}

// AskAfter has a shard, which is locked, take a worker's pull that depends on a tick.
func (b *Bound) AskAfter(s *protocol.Shard, out *link.Sender, r *wire.Record, at tick.Tick) {
	if _, away := s.Believed(r.Key); away {
		s.Request(&later{out, at}, r)
		return
	}
	r.Origin, r.Hops, r.Coming = b.links.Self, 0, false
	out.LetGo()
	if !b.park(early{at: at, here: true, rec: *r}) {
		s.Request(out, r)
	}
}

// PullAfter takes a peer's pull that depends on a tick. It returns nil if it waits; else
// it has become a pull, to be served now, and what is sent for it goes to what is returned.
func (b *Bound) PullAfter(out *link.Sender, r *wire.Record) (protocol.Out, error) {
	if b == nil || !b.model.Has(r.Key) {
		return nil, fmt.Errorf("%v of key %d: no table with bounded staleness has it", r.Kind, r.Key)
	}
	at := tick.Tick(r.Seq)
	out.LetGo()
	r.Kind, r.Seq = wire.Pull, 0
	if b.flooded(r.Origin) {
		return nil, fmt.Errorf("%d pulls of node %d wait here for ticks, and it asks for more: no node may", b.pulls.most, r.Origin)
	}
	if b.park(early{at: at, here: r.Origin == b.links.Self, rec: *r}) {
		return nil, nil
	}
	return &later{out, at}, nil
}

// later sends pulls that the receiver is to serve later.
type later struct {
	*link.Sender
	at tick.Tick
}

func (l *later) Send(to godwit.NodeID, r *wire.Record) {
	if r.Kind == wire.Pull && to != l.Self() {
		x := *r
		x.Kind, x.Seq = wire.PullAfter, uint64(l.at)
		r = &x
	}
	l.Sender.Send(to, r)
}

// An early pull waits at this node for a tick.
type early struct {
	at   tick.Tick
	here bool // of a worker of this node, of a key that may be read at a replica
	rec  wire.Record
}

// serve lets pulls go on that waited for a tick that is there now.
func (b *Bound) serve(out *link.Sender) {
	b.mu.Lock()
	if !b.someDue() {
		b.mu.Unlock()
		return
	}
	var due []early
	b.pulls.waiting = slices.DeleteFunc(b.pulls.waiting, func(x early) bool {
		if !b.due(&x) {
			return false
		}
		due = append(due, x)
		b.pulls.of[x.rec.Origin]--
		return true
	})
	b.findSoonest()
	b.mu.Unlock()
	var stay []early // there is no room in the queue to who asked
	for i := range due {
		r := &due[i].rec
		if r.Origin != b.links.Self && !out.Takes(r.Origin) {
			stay = append(stay, due[i])
			continue
		}
		b.rows.Resume(&later{out, due[i].at}, r)
	}
	b.putBack(stay)
}

// putBack keeps pulls that are due for a later round.
func (b *Bound) putBack(due []early) {
	if len(due) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range due {
		b.pulls.of[due[i].rec.Origin]++
	}
	b.pulls.waiting = append(due, b.pulls.waiting...)
	b.findSoonest()
	b.rounds.Ring()
}

// findSoonest finds the least tick that a pull waits for. The lock is held.
func (b *Bound) findSoonest() {
	for i := range b.pulls.waiting {
		if at := b.pulls.waiting[i].at; i == 0 || at.Before(b.pulls.soonest) {
			b.pulls.soonest = at
		}
	}
}

// due reports whether a pull that waits need not do so any more. Of a key that
// is at another node, its own settled ticks say that the answer contains
// everything; here, it may be a replica that is read. The lock is held.
func (b *Bound) due(x *early) bool {
	if x.here {
		return b.Reaches(x.at)
	}
	return !b.all().Before(x.at)
}

// someDue reports whether some of the pulls that wait may be due: none is before
// all nodes have settled its tick. The lock is held.
func (b *Bound) someDue() bool { return len(b.pulls.waiting) > 0 && !b.all().Before(b.pulls.soonest) }

// park keeps a pull until its tick, unless that is there. What waits is bounded
// by what the workers of all nodes may have outstanding (Limits.Ahead).
func (b *Bound) park(x early) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.due(&x) || b.broken.AfterAny {
		return false
	}
	if len(b.pulls.waiting) == 0 || x.at.Before(b.pulls.soonest) {
		b.pulls.soonest = x.at
	}
	b.pulls.waiting = append(b.pulls.waiting, x)
	b.pulls.of[x.rec.Origin]++
	b.pulls.parked.Add(1)
	return true
}

// flooded reports whether a node has as many pulls waiting here as its workers
// may have outstanding everywhere.
func (b *Bound) flooded(from godwit.NodeID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pulls.of[from] >= b.pulls.most
}
