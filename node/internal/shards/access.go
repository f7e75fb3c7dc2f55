package shards

import (
	"slices"

	"github.com/godwit-ps/godwit/node/internal/latch"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
)

// This file is what a worker does with keys that are here: it should cost
// little more than to copy and to add.

// An Access is the way of one goroutine, a worker's, to rows that are here.
type Access struct {
	// Miss are the positions of the last call's keys that were not served, each
	// followed by the offset of its value.
	Miss []int
	// Served is how many keys of the last call were served where.
	Served [3]uint64 // by protocol.Place
	// Mark is that of what the worker changes.
	Mark protocol.Mark

	parts  []Part    // of Served, but for the last table
	before [3]uint64 // what Served was when the last table began
	last   *Table    // of the keys that were accessed last

	set    *Set
	row    []float32    // scratch
	recall store.Recall // of pulls of more than few keys
	group  store.Group
	filler filler
}

// A Part is what of a call's keys of one table was served where.
type Part struct {
	Table  int       // its index in the model
	Served [3]uint64 // by protocol.Place
}

// Sole returns the table of the last call's keys; false: they are of several.
func (a *Access) Sole() (table int, ok bool) { return a.last.Index, len(a.parts) == 0 }

// Parts returns what Served consists of, a part whenever the table changed among the keys. It holds until the next call.
func (a *Access) Parts() []Part {
	a.leave(a.last)
	return a.parts
}

// leave ends the part of a table.
func (a *Access) leave(t *Table) {
	if a.Served == a.before {
		return
	}
	p := Part{t.Index, a.Served}
	for i, n := range a.before {
		p.Served[i] -= n
	}
	a.parts, a.before = append(a.parts, p), a.Served
}

// Access returns a way to the rows for one goroutine.
func (s *Set) Access() Access { return Access{set: s, last: s.First()} }

// Serve pulls or pushes the keys of a call that are here, counts them in Served, and leaves the
// others in Miss. It reports whether the node was open all the time. Keys must be the
// model's, and their values fill buf.
func (a *Access) Serve(kind wire.Kind, keys []godwit.Key, buf []float32) (ok bool) {
	a.Miss = a.Miss[:0]
	clear(a.Served[:])
	if len(a.parts) > 0 {
		a.parts, a.before = a.parts[:0], [3]uint64{}
	}
	var c call // set field by field: a copy of what was just written would wait for that
	c.s, c.a, c.keys, c.write = a.set, a, keys, kind != wire.Pull
	c.kind, c.buf, c.t = kind, buf, a.last
	c.ahead = a.set.large && len(keys) > few
	for first := 0; first < len(keys); {
		if c.missing(first) {
			if n, floats := c.fill(first, kind, buf[c.off:]); n > 0 {
				c.enter(keys[first])
				a.Served[protocol.AtOwner] += uint64(n)
				first, c.off = first+n, c.off+floats
				continue
			}
		}
		rows := c.next(first, c.t)
		if latch.Optimistic && kind == wire.Pull {
			ok = c.read(first, rows)
		} else {
			ok = c.serve(first, rows)
		}
		if !ok {
			return false
		}
		first += len(rows)
		if c.ahead && c.mostAbsent() {
			a.filler.on = true
		}
	}
	a.last = c.t
	return true
}

// A call is what Serve has under way.
type call struct {
	prefetcher
	kind wire.Kind
	buf  []float32
	off  int    // in buf: of the next key's value
	t    *Table // of the last key
}

// enter has the table of the last key be that of k.
func (c *call) enter(k godwit.Key) {
	if !c.t.Has(k) {
		c.a.leave(c.t)
		c.t = c.s.Table(k)
	}
}

// read is serve of pulls where rows are read without the lock. What that cannot serve, serve does.
func (c *call) read(first int, rows []*store.Header) (ok bool) {
	t, off := c.t, c.off
	served := &c.a.Served
	for i, h := range rows {
		k := c.keys[first+i]
		if h == nil && t.Has(k) && c.s.homedElsewhere(k) { // as serve has it
			served[protocol.Elsewhere]++
			c.a.Miss = append(c.a.Miss, first+i, off)
			off += t.Dim
			continue
		}
		x := c.s.shard(k)
		if v, ok := x.Word(); ok && t.Has(k) {
			dst := c.buf[off : off+t.Dim : off+t.Dim]
			row := dst
			if t.query != nil {
				c.a.row = slices.Grow(c.a.row[:0], t.Floats)[:t.Floats]
				row = c.a.row
			}
			p := protocol.ReadOptimistic(h, k, row)
			if p != protocol.Elsewhere && x.Unchanged(v) {
				if t.query != nil {
					t.query.Query(dst, row[:t.Dim:t.Dim], row[t.Dim:])
				}
				served[p]++
				off += t.Dim
				continue
			}
		}
		c.t, c.off = t, off
		if !c.serve(first+i, rows[i:i+1]) {
			return false
		}
		t, off = c.t, c.off
	}
	c.t, c.off = t, off
	return true
}

// serve serves the keys from a position on whose rows were looked for. It reports false if the
// node was closed.
func (c *call) serve(first int, rows []*store.Header) (ok bool) {
	a, t, off := c.a, c.t, c.off
	for i, h := range rows {
		k := c.keys[first+i]
		if !t.Has(k) {
			c.t = t
			c.enter(k)
			t = c.t
		}
		vals := c.buf[off : off+t.Dim]
		x := a.set.shard(k)
		p := protocol.Elsewhere
		ok = true
		switch {
		case h == nil && c.elsewhere(k):
			// Not here, as far as a look without the lock can tell. The request
			// looks again.
		case c.kind == wire.Pull && t.query != nil: // the rule is asked about no row that changes meanwhile
			p, ok = x.pullLocked(h, k, vals)
		case c.kind == wire.Pull:
			p, ok = x.pull(h, k, vals)
		default:
			p, ok = a.push(x, h, t, k, vals)
		}
		if !ok {
			return false
		}
		if a.Served[p]++; p == protocol.Elsewhere {
			a.Miss = append(a.Miss, first+i, off)
		}
		off += t.Dim
	}
	c.t, c.off = t, off
	return true
}

// Read pulls one value that is here. It reports where it stood, and false if the node was
// closed.
func (a *Access) Read(t *Table, k godwit.Key, dst []float32) (protocol.Place, bool) {
	x := a.set.shard(k)
	h := x.Look(k)
	if t.query != nil {
		return x.pullLocked(h, k, dst)
	}
	return x.pull(h, k, dst)
}

// pull copies the value of a key whose row was found, if it was. It reports
// false if the node was closed.
func (x *shard) pull(h *store.Header, k godwit.Key, dst []float32) (protocol.Place, bool) {
	if latch.Optimistic {
		if v, ok := x.Word(); ok {
			if p := protocol.ReadOptimistic(h, k, dst); p != protocol.Elsewhere && x.Unchanged(v) {
				return p, true
			}
		}
	}
	return x.pullLocked(h, k, dst)
}

func (x *shard) pullLocked(h *store.Header, k godwit.Key, dst []float32) (protocol.Place, bool) {
	x.Lock()
	defer x.Unlock()
	if x.over() {
		return protocol.Elsewhere, false
	}
	return x.PullAt(h, k, dst), true
}

// push updates the value of a key whose row was found, if it was. It reports false if the
// node was closed, or has no memory for a row that is to be made.
func (a *Access) push(x *shard, h *store.Header, t *Table, k godwit.Key, push []float32) (protocol.Place, bool) {
	x.Lock()
	defer x.Unlock() // also if the table's rule panics: who closes the node takes the lock
	if x.closed {
		return protocol.Elsewhere, false
	}
	if p := t.update.Push(h, k, push, a.Mark); p != protocol.Elsewhere {
		return p, true
	}
	if x.starved.Load() {
		return protocol.Elsewhere, false
	}
	p := x.PushAt(h, k, push, a.Mark)
	a.set.noteWork(x, k)
	return p, true
}
