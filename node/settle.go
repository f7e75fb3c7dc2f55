package node

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// This file is the pacer's part of bounded staleness, at the begin and at the end
// of its rounds.

// open begins a round: it settles what the workers have left behind them.
func (b *bound) open(p *pacer) {
	if !b.flying.Load() {
		b.begin()
	}
	b.mu.Lock()
	b.goal = b.all()
	own := b.nodes[b.n.self]
	b.mu.Unlock()
	if b.broken.MarkFirst && b.presses() {
		for i := range b.fresh {
			b.fresh[i] = b.goal
		}
		b.tell(p, own)
		p.out.Flush()
	}
}

// begin has the updates sent that were made before the least tick of the
// workers, of those whose pushes were all answered.
func (b *bound) begin() {
	t := b.ready()
	if !b.nodes[b.n.self].settled.Before(t) { // which only the pacer changes
		return
	}
	b.target, b.flush = t, b.flush[:0]
	b.flying.Store(true)
	if !b.copies {
		return // no replica has updates
	}
	b.flush = b.n.rows.BeginSettle(b.flush)
}

// ready returns the tick before which no push of this node's workers is
// unanswered. The look at the workers' ticks comes first: what is under way from
// before a tick is there by then.
func (b *bound) ready() tick.Tick {
	if b.broken.PushesFirst {
		open := b.unanswered()
		least, _ := b.clocks.Least()
		return firstOf(least, open)
	}
	least, _ := b.clocks.Least()
	preempt.Point()
	return firstOf(least, b.unanswered())
}

// unanswered returns the tick of the oldest push of this node's workers that was not
// answered; 0: none is under way.
func (b *bound) unanswered() (oldest tick.Tick) {
	for _, w := range b.n.workers {
		if u, ok := w.ops.Oldest(); ok && !b.broken.SettleOpen {
			oldest = firstOf(u, oldest)
		}
		preempt.Point()
	}
	return oldest
}

// firstOf returns the earlier of two ticks, of which the second may be none.
func firstOf(t, u tick.Tick) tick.Tick {
	if u == 0 {
		return t
	}
	return tick.Min(t, u)
}

// presses reports whether everything that holders lack must go.
func (b *bound) presses() bool {
	return b.copies && b.marked.Before(b.goal) && !b.broken.SpareIdle
}

// end ends a round: it tells what it brought. sent says whether the round went
// over the shards, and held whether something had to stay.
func (b *bound) end(p *pacer, sent, held bool) {
	settled := b.flying.Load() && b.flushed()
	b.mu.Lock()
	if settled {
		b.flying.Store(false)
		b.nodes[b.n.self].settled = b.target
	}
	if sent && b.copies {
		b.mark(p)
	}
	b.moved()
	more := b.copies && b.marked.Before(b.all()) || !b.flying.Load() && b.nodes[b.n.self].settled.Before(b.ready())
	own := b.nodes[b.n.self]
	b.mu.Unlock()
	b.tell(p, own)
	b.serve(p)
	switch {
	case more && held:
		b.n.pacer.bell.Ring() // when there is room
	case more:
		b.stir()
	}
}

// flushed reports whether everything that settling waits for has arrived.
func (b *bound) flushed() bool {
	b.flush = b.flush.Left()
	return len(b.flush) == 0
}

// mark notes whose replicas contain what the round was to bring. The lock is held.
func (b *bound) mark(p *pacer) {
	b.marked = b.goal
	for i := range b.fresh {
		if i == int(b.n.self) {
			continue
		}
		if !p.out.Full(godwit.NodeID(i)) {
			b.fresh[i] = tick.Max(b.fresh[i], b.goal)
		}
		b.marked = tick.Min(b.marked, b.fresh[i])
	}
}

// tell sends every peer what it does not know yet.
func (b *bound) tell(p *pacer, own standing) {
	_, slowest := b.clocks.Least()
	for i := range b.told {
		if i == int(b.n.self) {
			continue
		}
		s := standing{own.settled, b.fresh[i], own.wanted, slowest, b.flying.Load() && own.settled.Before(tick.Tick(b.wanted.Load()))}
		t := b.told[i]
		if s == t {
			continue
		}
		if t.slowest = s.slowest; s == t && !s.settled.Before(tick.Tick(b.wanted.Load())) {
			continue // who is last matters to those that wait
		}
		b.told[i] = s
		p.out.Send(godwit.NodeID(i), &wire.Record{Kind: wire.Settled, Op: uint64(s.settled), Seq: uint64(s.fresh), Version: godwit.Version(s.wanted), Key: keyOf(s)})
	}
}

// keyOf is the key of a Settled record: the worker that is last, and a bit for
// updates that are on their way.
func keyOf(s standing) godwit.Key {
	k := godwit.Key(s.slowest) << 1
	if s.flying {
		k |= 1
	}
	return k
}
