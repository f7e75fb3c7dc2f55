package staleness

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// This file is what bounded staleness does at the begin and at the end of the node's
// sync rounds.

// settling is what the goroutine of the rounds knows. Nobody else uses it.
type settling struct {
	goal   tick.Tick    // the least of all nodes when the round began
	target tick.Tick    // is settled when flush is done; if flying
	flush  shards.Flush // what is left of it
	fresh  []tick.Tick  // by peer: as marked
	told   []standing   // by peer: what it was told last
}

// Open begins a round: it settles what the workers have left behind them. It reports
// whether everything that holders lack must go with it.
func (b *Bound) Open(out *link.Sender) (press bool) {
	if !b.flying.Load() {
		b.begin()
	}
	b.mu.Lock()
	b.round.goal = b.all()
	own := b.nodes[b.links.Self]
	b.mu.Unlock()
	if b.broken.MarkFirst && b.presses() {
		for i := range b.round.fresh {
			b.round.fresh[i] = b.round.goal
		}
		b.tell(out, own)
		out.Flush()
	}
	return b.presses()
}

// begin has the updates sent that were made before the least tick of the
// workers, of those whose pushes were all answered.
func (b *Bound) begin() {
	t := b.ready()
	if !b.nodes[b.links.Self].settled.Before(t) { // which only the goroutine of the rounds changes
		return
	}
	b.round.target, b.round.flush = t, b.round.flush[:0]
	b.flying.Store(true)
	if !b.copies {
		return // no replica has updates
	}
	b.round.flush = b.rows.BeginSettle(b.round.flush)
}

// ready returns the tick before which no push of this node's workers is
// unanswered. The look at the workers' ticks comes first: what is under way from
// before a tick is there by then.
func (b *Bound) ready() tick.Tick {
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
func (b *Bound) unanswered() (oldest tick.Tick) {
	for i := range b.clocks {
		if u, ok := b.ops.Of(i).Oldest(); ok && !b.broken.SettleOpen {
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
func (b *Bound) presses() bool {
	return b.copies && b.marked.Before(b.round.goal) && !b.broken.SpareIdle
}

// Close ends a round: it tells what it brought. sent says whether the round went
// over the shards and sent refreshes, and held whether something had to stay.
func (b *Bound) Close(out *link.Sender, sent, held bool) (more bool) {
	settled := b.flying.Load() && b.flushed()
	b.mu.Lock()
	if settled {
		b.flying.Store(false)
		b.nodes[b.links.Self].settled = b.round.target
	}
	if sent && b.copies {
		b.mark(out)
	}
	b.moved()
	left := b.copies && b.marked.Before(b.all()) || !b.flying.Load() && b.nodes[b.links.Self].settled.Before(b.ready())
	own := b.nodes[b.links.Self]
	b.mu.Unlock()
	b.tell(out, own)
	b.serve(out)
	if left && !held { // else the next round comes when there is room
		b.Stir()
	}
	return false
}

// flushed reports whether everything that settling waits for has arrived.
func (b *Bound) flushed() bool {
	b.round.flush = b.round.flush.Left()
	return len(b.round.flush) == 0
}

// mark notes whose replicas contain what the round was to bring. The lock is held.
func (b *Bound) mark(out *link.Sender) {
	b.marked = b.round.goal
	for i := range b.round.fresh {
		if i == int(b.links.Self) {
			continue
		}
		if !out.Full(godwit.NodeID(i)) {
			b.round.fresh[i] = tick.Max(b.round.fresh[i], b.round.goal)
		}
		b.marked = tick.Min(b.marked, b.round.fresh[i])
	}
}

// tell sends every peer what it does not know yet.
func (b *Bound) tell(out *link.Sender, own standing) {
	_, slowest := b.clocks.Least()
	for i := range b.round.told {
		if i == int(b.links.Self) {
			continue
		}
		s := standing{own.settled, b.round.fresh[i], own.wanted, slowest, b.flying.Load() && own.settled.Before(tick.Tick(b.wanted.Load()))}
		t := b.round.told[i]
		if s == t {
			continue
		}
		if t.slowest = s.slowest; s == t && !s.settled.Before(tick.Tick(b.wanted.Load())) {
			continue // who is last matters to those that wait
		}
		b.round.told[i] = s
		out.Send(godwit.NodeID(i), &wire.Record{Kind: wire.Settled, Op: uint64(s.settled), Seq: uint64(s.fresh), Version: godwit.Version(s.wanted), Key: keyOf(s)})
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
