package staleness

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// limits are the bounds of the tables, which may change while the run lasts.
type limits struct {
	each  []atomic.Int64 // by table: clocks, or Unlimited
	tight atomic.Int64   // the least of them

	// Under the bound's lock:
	numbers []uint64           // by table: of the last change
	changes map[uint64]*change // of this node, by question
}

// Unlimited is the limit of a table that has no bound, from the start or by now.
const Unlimited = int64(1) << 62

func newLimits(m *godwit.Model) *limits {
	l := &limits{each: make([]atomic.Int64, m.Tables()), numbers: make([]uint64, m.Tables()), changes: map[uint64]*change{}}
	for i := range l.each {
		l.each[i].Store(limitOf(m.Table(i).Staleness.Clocks()))
	}
	l.tighten()
	return l
}

// WindowsOf returns the windows of the tables, in clocks; nil if none has one.
func WindowsOf(m *godwit.Model) []int64 {
	ws, some := make([]int64, m.Tables()), false
	for i := range ws {
		ws[i] = limitOf(m.Table(i).Window.Clocks())
		some = some || ws[i] != Unlimited
	}
	if !some {
		return nil
	}
	return ws
}

func limitOf(s godwit.Clock, ok bool) int64 {
	if !ok {
		return Unlimited
	}
	return int64(s)
}

// tighten finds the least limit.
func (l *limits) tighten() {
	least := Unlimited
	for i := range l.each {
		least = min(least, l.each[i].Load())
	}
	l.tight.Store(least)
}

// Limit returns the bound of a table by now, in clocks; false if it has none.
func (b *Bound) Limit(table int) (clocks int64, ok bool) {
	if b == nil {
		return 0, false
	}
	clocks = b.limits.each[table].Load()
	return clocks, clocks != Unlimited
}

// A change of a table's bound that other nodes have not acknowledged yet.
type change struct {
	missing int
	done    chan struct{} // closed when none are missing
}

// Set changes the bound on the staleness of a table's reads, on all nodes, also while
// workers wait for the old one (node.Node.SetStaleness).
func (b *Bound) Set(ctx context.Context, table int, s godwit.Bound) error {
	clocks, ok := s.Clocks()
	name := b.model.Table(table).Name
	id := b.ids.Add(1)
	c, number := b.change(id, table, limitOf(clocks, ok))
	out := b.links.Sender()
	for peer := range b.links.All {
		out.Send(peer, &wire.Record{Kind: wire.Rebound, Op: id, Key: b.model.Key(table, 0), Seq: uint64(clocks + 1), Version: godwit.Version(number)})
	}
	out.Flush()
	switch b.host.Wait(c.done, ctx.Done(), b.host.Done()) {
	case 1:
		return fmt.Errorf("node: set staleness of table %q: waiting for %d nodes: %w", name, b.forget(id), b.host.Late(ctx, context.Cause(ctx)))
	case 2:
		return fmt.Errorf("node: set staleness of table %q: %w", name, b.host.Err())
	}
	return nil
}

// change changes a limit here and returns what tells when others have.
func (b *Bound) change(id uint64, table int, limit int64) (*change, uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// A number is greater than all that this node has seen, and ends with the
	// node, so that no two are equal.
	const nodes = 1 << 16
	number := (b.limits.numbers[table]/nodes+1)*nodes + uint64(b.links.Self)
	b.limit(table, limit, number)
	c := &change{len(b.nodes) - 1, make(chan struct{})}
	if c.missing == 0 {
		close(c.done)
	} else {
		b.limits.changes[id] = c
	}
	return c, number
}

// limit changes a limit, unless it has been changed since. The lock is held.
func (b *Bound) limit(table int, limit int64, number uint64) {
	if number <= b.limits.numbers[table] {
		return
	}
	b.limits.numbers[table] = number
	b.limits.each[table].Store(limit)
	b.limits.tighten()
	b.grant(func(tick.Tick) bool { return true }) // all look again what they need
}

// Acknowledged takes a node's word that it knows of a change.
func (b *Bound) Acknowledged(id uint64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.limits.changes[id]; c != nil {
		if c.missing--; c.missing == 0 {
			delete(b.limits.changes, id)
			close(c.done)
		}
	}
}

// forget gives a change up, and returns how many nodes have not heard of it, as
// far as this one knows. They will.
func (b *Bound) forget(id uint64) (missing int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.limits.changes[id]; c != nil {
		missing = c.missing
		delete(b.limits.changes, id)
	}
	return missing
}

// Told takes what a peer says of ticks and bounds.
func (b *Bound) Told(out *link.Sender, from godwit.NodeID, r *wire.Record) error {
	switch {
	case b == nil:
		return fmt.Errorf("%v: no table of this run has bounded staleness", r.Kind)
	case r.Kind == wire.Settled:
		b.heard(from, r)
		return nil
	case !b.model.Has(r.Key) || r.Seq > godwit.MaxBound+1:
		return fmt.Errorf("%v of the table of key %d to %d clocks, the model has %d keys", r.Kind, r.Key, r.Seq, b.model.Keys())
	}
	table, _ := b.model.Locate(r.Key)
	limit := limitOf(godwit.Clock(r.Seq)-1, r.Seq > 0)
	b.mu.Lock()
	b.limit(table, limit, uint64(r.Version))
	b.mu.Unlock()
	out.Send(from, &wire.Record{Kind: wire.SyncAck, Op: r.Op})
	return nil
}
