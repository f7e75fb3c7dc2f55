package node

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// A change of a table's bound that other nodes have not acknowledged yet.
type change struct {
	missing int
	done    chan struct{} // closed when none are missing
}

// SetStaleness changes the bound on the staleness of a table's reads, on all
// nodes, also while workers wait for the old one. At this node it holds for
// reads that begin after the call did, at another one from when it hears of it;
// when SetStaleness returns nil, it holds everywhere. Eventual is a bound, too.
// Of changes by several callers at a time, all nodes end with the same.
//
// A table that the model gives no bound cannot get one while the run lasts
// ([godwit.ErrBound]): nobody has kept account of its updates.
func (n *Node) SetStaleness(ctx context.Context, table int, s godwit.Bound) error {
	if err := n.Err(); err != nil {
		return fmt.Errorf("node: set staleness: %w", err)
	}
	if table < 0 || table >= n.model.Tables() {
		return fmt.Errorf("node: set staleness: there is no table %d, the model has %d", table, n.model.Tables())
	}
	clocks, ok := s.Clocks()
	if clocks < -1 {
		return fmt.Errorf("node: set staleness of table %q: the bound is out of range, want 0 … %d", n.model.Table(table).Name, godwit.MaxBound)
	}
	if n.model.Table(table).Staleness == godwit.Eventual {
		return fmt.Errorf("node: set staleness of table %q: %w: the model must give the table one from the start, be it far", n.model.Table(table).Name, godwit.ErrBound)
	}
	b, id := n.bound, n.ids.Add(1)
	c, number := b.change(id, table, limitOf(clocks, ok))
	out := n.links.Sender()
	for i := range n.links.Nodes() {
		if godwit.NodeID(i) != n.self {
			out.Send(godwit.NodeID(i), &wire.Record{Kind: wire.Rebound, Op: id, Key: n.model.Key(table, 0), Seq: uint64(clocks + 1), Version: godwit.Version(number)})
		}
	}
	out.Flush()
	switch n.Wait(c.done, ctx.Done(), n.Done()) {
	case 1:
		return fmt.Errorf("node: set staleness of table %q: waiting for %d nodes: %w", n.model.Table(table).Name, b.forget(id), context.Cause(ctx))
	case 2:
		return fmt.Errorf("node: set staleness of table %q: %w", n.model.Table(table).Name, n.Err())
	}
	return nil
}

// change changes a limit here and returns what tells when others have.
func (b *bound) change(id uint64, table int, limit int64) (*change, uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// A number is greater than all that this node has seen, and ends with the
	// node, so that no two are equal.
	const nodes = 1 << 16
	number := (b.numbers[table]/nodes+1)*nodes + uint64(b.n.self)
	b.limit(table, limit, number)
	c := &change{len(b.nodes) - 1, make(chan struct{})}
	if c.missing == 0 {
		close(c.done)
	} else {
		b.changes[id] = c
	}
	return c, number
}

// limit changes a limit, unless it has been changed since. The lock is held.
func (b *bound) limit(table int, limit int64, number uint64) {
	if number <= b.numbers[table] {
		return
	}
	b.numbers[table] = number
	b.limits[table].Store(limit)
	b.tighten()
	b.grant(func(tick.Tick) bool { return true }) // all look again what they need
}

// acknowledged takes a node's word that it knows of a change.
func (b *bound) acknowledged(id uint64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.changes[id]; c != nil {
		if c.missing--; c.missing == 0 {
			delete(b.changes, id)
			close(c.done)
		}
	}
}

// forget gives a change up, and returns how many nodes have not heard of it, as
// far as this one knows. They will.
func (b *bound) forget(id uint64) (missing int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.changes[id]; c != nil {
		missing = c.missing
		delete(b.changes, id)
	}
	return missing
}

// told takes what a peer says of ticks and bounds.
func (n *Node) told(in *inbound, from godwit.NodeID, r *wire.Record) error {
	switch {
	case n.bound == nil:
		return fmt.Errorf("%v: no table of this run has bounded staleness", r.Kind)
	case r.Kind == wire.Settled:
		n.bound.heard(from, r)
		return nil
	case !n.model.Has(r.Key) || r.Seq > godwit.MaxBound+1:
		return fmt.Errorf("%v of the table of key %d to %d clocks, the model has %d keys", r.Kind, r.Key, r.Seq, n.model.Keys())
	}
	table, _ := n.model.Locate(r.Key)
	limit := limitOf(godwit.Clock(r.Seq)-1, r.Seq > 0)
	n.bound.mu.Lock()
	n.bound.limit(table, limit, uint64(r.Version))
	n.bound.mu.Unlock()
	in.out.Send(from, &wire.Record{Kind: wire.SyncAck, Op: r.Op})
	return nil
}
