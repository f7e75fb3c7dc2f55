package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// PullAfter is what Li et al. (OSDI 2014, section 3.4) call a dependency: the
// receiver runs the request when what it depends on is finished. Here that is a
// tick that all nodes have settled, so no node has to say more than it says
// anyway. A key that is not here is asked for at once, and the first node that
// the request comes to keeps it; when its time has come it is a pull like any
// other, which finds the key wherever that has moved meanwhile. On its way there
// it still has its tick: it may come back to who asked, who has a replica by then
// that lacks something.
func (w *worker) PullAfter(ctx context.Context, after godwit.Clock, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	w.enter()
	defer w.leave()
	const what = "pull"
	if err := w.check(what, keys, len(dst)); err != nil {
		return 0, err
	}
	if err := w.n.Err(); err != nil {
		return 0, w.fail(what, keys, err)
	}
	for _, k := range keys {
		if i, _ := w.n.model.Locate(k); w.n.model.Table(i).Staleness == godwit.Eventual {
			return 0, w.fail(what, keys, fmt.Errorf("%w: pull after clock %d: table %q must have bounded staleness, be it far", godwit.ErrBound, after, w.n.model.Table(i).Name))
		}
	}
	if len(keys) == 0 {
		return 0, nil
	}
	if w.n.windows != nil {
		if err := w.inWindow(ctx, what, keys); err != nil {
			return 0, err
		}
	}
	b := w.n.bound
	at := w.clock.TickAt(after)
	w.watched(keys)
	if b.reaches(at) {
		return w.serve(ctx, what, wire.Pull, keys, dst, &w.count.pull)
	}
	if err := w.ops.Reserve(len(keys)); err != nil {
		return 0, w.fail(what, keys, err)
	}
	w.reserved = len(keys)
	w.after = at
	defer func() {
		w.ops.Return(w.reserved)
		w.after, w.reserved = 0, 0
	}()
	if err := w.reads(keys); err != nil {
		return 0, err
	}
	add(&w.count.calls, 1)
	w.every(keys)
	return w.request(ctx, what, wire.Pull, keys, dst, &w.count.pull)
}

// askLater has a shard take a pull for which it may be too early. The shard is locked.
func (w *worker) askLater(s *protocol.Shard) {
	r := &w.rec
	if _, away := s.Believed(r.Key); away {
		s.Request(&later{&w.out, w.after}, r)
		return
	}
	r.Origin, r.Hops, r.Coming = w.n.self, 0, false
	w.out.LetGo()
	if !w.n.bound.park(parking{at: w.after, here: true, rec: *r}) {
		s.Request(&w.out, r)
	}
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

// pullAfter takes such a request. It returns nil if it waits; else it has become a
// pull, to be served now, and what is sent for it goes there.
func (n *Node) pullAfter(in *inbound, r *wire.Record) (out protocol.Out, err error) {
	if n.bound == nil || !n.model.Has(r.Key) {
		return nil, fmt.Errorf("%v of key %d: no table with bounded staleness has it", r.Kind, r.Key)
	}
	at := tick.Tick(r.Seq)
	in.out.LetGo()
	r.Kind, r.Seq = wire.Pull, 0
	if n.bound.flooded(r.Origin) {
		return nil, fmt.Errorf("%d pulls of node %d wait here for ticks, and it asks for more: no node may", n.bound.most, r.Origin)
	}
	if n.bound.park(parking{at: at, here: r.Origin == n.self, rec: *r}) {
		return nil, nil
	}
	return &later{&in.out, at}, nil
}

// delayed says who holds up an operation that waits for a tick.
func (w *worker) delayed(o *operation.Op) error {
	behind, _ := w.n.bound.behind(o.After)
	return fmt.Errorf("waiting for updates before %v: %s", o.After, behind)
}

// awaited notes that the worker waits for an operation that waits for a tick.
func (w *worker) awaited(o *operation.Op) error {
	if w.clock.Tick().Before(o.After) {
		return w.fail(o.What, nil, fmt.Errorf("%w: it waits for updates before %v, and this worker is at %v: advance first", godwit.ErrBound, o.After, w.clock.Tick()))
	}
	b := w.n.bound
	b.mu.Lock()
	b.want(o.After)
	b.mu.Unlock()
	b.n.pacer.bell.Ring()
	b.n.pacer.bell.Hurry()
	return nil
}

// Finish has others not wait for the worker until the next Barrier.
func (w *worker) Finish() {
	w.enter()
	defer w.leave()
	if b := w.n.bound; b != nil {
		b.enter(w)
	}
}

// A parking is a pull that waits at this node for a tick.
type parking struct {
	at   tick.Tick
	here bool // of a worker of this node, of a key that may be read at a replica
	rec  wire.Record
}

// serve lets pulls go on that waited for a tick that is there now.
func (b *bound) serve(p *pacer) {
	b.mu.Lock()
	if !b.someDue() {
		b.mu.Unlock()
		return
	}
	var due []parking
	b.parked = slices.DeleteFunc(b.parked, func(x parking) bool {
		if !b.due(&x) {
			return false
		}
		due = append(due, x)
		b.theirs[x.rec.Origin]--
		return true
	})
	b.findSoonest()
	b.mu.Unlock()
	var stay []parking // there is no room in the queue to who asked
	for i := range due {
		r := &due[i].rec
		if r.Origin != b.n.self && !p.out.Takes(r.Origin) {
			stay = append(stay, due[i])
			continue
		}
		b.n.rows.Resume(&later{&p.out, due[i].at}, r)
	}
	b.putBack(p, stay)
}

// putBack keeps pulls that are due for a later round.
func (b *bound) putBack(p *pacer, due []parking) {
	if len(due) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range due {
		b.theirs[due[i].rec.Origin]++
	}
	b.parked = append(due, b.parked...)
	b.findSoonest()
	p.bell.Ring()
}

// findSoonest finds the least tick that a pull waits for. The lock is held.
func (b *bound) findSoonest() {
	for i := range b.parked {
		if at := b.parked[i].at; i == 0 || at.Before(b.soonest) {
			b.soonest = at
		}
	}
}

// due reports whether a pull that waits need not do so any more. Of a key that
// is at another node, its own settled ticks say that the answer contains
// everything; here, it may be a replica that is read. The lock is held.
func (b *bound) due(x *parking) bool {
	if x.here {
		return b.reaches(x.at)
	}
	return !b.all().Before(x.at)
}

// someDue reports whether some of the pulls that wait may be due: none is before
// all nodes have settled its tick. The lock is held.
func (b *bound) someDue() bool { return len(b.parked) > 0 && !b.all().Before(b.soonest) }

// park keeps a pull until its tick, unless that is there. What waits is bounded
// by what the workers of all nodes may have outstanding (Limits.Ahead).
func (b *bound) park(x parking) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.due(&x) || b.broken.AfterAny {
		return false
	}
	if len(b.parked) == 0 || x.at.Before(b.soonest) {
		b.soonest = x.at
	}
	b.parked = append(b.parked, x)
	b.theirs[x.rec.Origin]++
	b.count.Add(1)
	return true
}

// flooded reports whether a node has as many pulls waiting here as its workers
// may have outstanding everywhere.
func (b *bound) flooded(from godwit.NodeID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.theirs[from] >= b.most
}
