package sim

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/history"
	"github.com/godwit-ps/godwit/internal/preempt"
)

// Scanned counts the scans of a storm.
type Scanned struct {
	Scans  int // that were made
	Keys   int // that they yielded
	Away   int // of these, keys whose owner was not their home when the scan began
	Moving int // keys that changed their owner during a scan
}

// Add adds what another storm scanned.
func (s *Scanned) Add(o Scanned) {
	s.Scans += o.Scans
	s.Keys += o.Keys
	s.Away += o.Away
	s.Moving += o.Moving
}

// ranged reads or writes a range of keys, which may be of several tables.
func (x *stormWorker) ranged(ctx context.Context) error {
	end := godwit.Key(x.rng.Uint64N(x.clocks + 1))
	first := godwit.Key(x.rng.Uint64N(uint64(end) + 1))
	switch x.rng.IntN(4) {
	case 0:
		return x.pushRange(ctx, first, end)
	case 1:
		return x.pullRange(ctx, first, end)
	default:
		return x.scan(ctx, first, end)
	}
}

func (x *stormWorker) pushRange(ctx context.Context, first, end godwit.Key) error {
	end = min(end, first+3) // the history is of few pushes a key
	n, _ := x.model.RangeFloats(first, end)
	push, off := make([]float32, n), 0
	for k := first; k < end; k++ {
		push[off+x.id] = x.issue(k)
		off += x.model.Dim(k)
	}
	p := x.ending(ctx)
	gave, err := p.gaveUp(&x.cancelled.Pushes, godwit.PushRange(p, x.w, first, end, push))
	if err != nil {
		return err
	}
	for k := first; k < end; k++ {
		if gave {
			x.unsure(k)
		} else {
			x.history.PushComplete(x.id, k)
		}
	}
	return nil
}

func (x *stormWorker) pullRange(ctx context.Context, first, end godwit.Key) error {
	issued, began := x.readIssued(first, end), x.moment()
	n, _ := x.model.RangeFloats(first, end)
	vals := make([]float32, n)
	p := x.ending(ctx)
	if gave, err := p.gaveUp(&x.cancelled.Pulls, godwit.PullRange(p, x.w, first, end, vals)); gave || err != nil {
		x.giveUp(vals)
		return err
	}
	for k := first; k < end; k++ {
		dim := x.model.Dim(k)
		if err := x.history.Read(issued[k], vals[:dim]); err != nil {
			return fmt.Errorf("in a range: %w", err)
		}
		if err := x.judge(k, vals[:dim], began); err != nil {
			return fmt.Errorf("in a range: %w", err)
		}
		vals = vals[dim:]
	}
	return nil
}

func (x *stormWorker) readIssued(first, end godwit.Key) map[godwit.Key]*history.Reading {
	issued := map[godwit.Key]*history.Reading{}
	for k := first; k < end; k++ {
		issued[k] = x.history.ReadIssued(x.id, k)
	}
	return issued
}

// scan judges the rows that are in use: of those that are when it begins, none
// is missing, none comes twice, and all come in order, with values as reads see
// them.
func (x *stormWorker) scan(ctx context.Context, first, end godwit.Key) error {
	home := godwit.NoNode
	if x.rng.IntN(3) == 0 {
		home = godwit.NodeID(x.rng.IntN(len(x.c.hosts)))
	}
	issued, before := x.readIssued(first, end), x.owners(first, end, home)
	got := map[godwit.Key]bool{}
	last := first
	p := x.ending(ctx)
	for row, err := range godwit.Rows(p, x.w, first, end, home) {
		k := row.Key
		switch {
		case err != nil:
			_, err = p.gaveUp(&x.cancelled.Others, err)
			return err
		case k < last || k >= end || got[k]:
			return fmt.Errorf("worker %d scans the keys %d … %d: key %d comes after key %d", x.id, first, end-1, k, last)
		case home != godwit.NoNode && x.c.hosts[0].node.Home(k) != home:
			return fmt.Errorf("worker %d scans the keys of node %d: key %d comes", x.id, home, k)
		}
		got[k], last = true, k
		if err := x.history.Read(issued[k], row.Value); err != nil {
			return fmt.Errorf("in a scan: %w", err)
		}
	}
	after := x.owners(first, end, home)
	for k, owner := range before {
		if !got[k] {
			return fmt.Errorf("worker %d scans the keys %d … %d of node %d: key %d, owned by node %d, is missing", x.id, first, end-1, home, k, owner)
		}
		if owner != x.c.hosts[0].node.Home(k) {
			x.scanned.Away++
		}
		if after[k] != owner {
			x.scanned.Moving++
		}
	}
	for k := range got {
		if _, ok := after[k]; !ok {
			return fmt.Errorf("worker %d scans the keys %d … %d: key %d comes, which nobody used", x.id, first, end-1, k)
		}
	}
	x.scanned.Scans++
	x.scanned.Keys += len(got)
	return nil
}

// owners returns where the rows are of the keys of a range that are in use and
// have their home at a node or, if it is no node, anywhere.
func (x *stormWorker) owners(first, end godwit.Key, home godwit.NodeID) map[godwit.Key]godwit.NodeID {
	preempt.Hold() // at one moment
	defer preempt.Release()
	at := map[godwit.Key]godwit.NodeID{}
	for k := first; k < end; k++ {
		if home != godwit.NoNode && x.c.hosts[0].node.Home(k) != home {
			continue
		}
		for _, h := range x.c.hosts {
			if y := h.virtual.Holding(k); y.Main() || y.State == "frozen" {
				at[k] = h.id
			}
		}
	}
	return at
}
