package node

import (
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
)

// This file is what a worker does with keys that are here: it should cost
// little more than to copy and to add.

// table is what an access needs to know of a table of the model.
type table struct {
	first  godwit.Key
	rows   godwit.Key
	dim    int
	floats int // of a row
	update *protocol.Update
	query  godwit.Querier // makes what pulls get; nil: they get the value
}

func (t *table) has(k godwit.Key) bool { return k-t.first < t.rows }

func (t *table) hasAll(keys []godwit.Key) bool {
	for _, k := range keys {
		if !t.has(k) {
			return false
		}
	}
	return true
}

func tablesOf(c *protocol.Config) []table {
	m := c.Model
	ts := make([]table, m.Tables())
	for i := range ts {
		query, _ := m.Table(i).Rule.(godwit.Querier)
		ts[i] = table{m.Key(i, 0), godwit.Key(m.Table(i).Rows), m.Table(i).Dim, m.TableRowLen(i), c.Update(i), query}
	}
	return ts
}

// table returns the table of a key, nil if the model has no such key.
func (n *Node) table(k godwit.Key) *table {
	if !n.model.Has(k) {
		return nil
	}
	i, _ := n.model.Locate(k)
	return &n.tables[i]
}

// local serves the keys of a call that are here, and leaves the position and
// the offset of the others in w.miss. It reports how many were served where,
// and whether the node was open all the time.
func (w *worker) local(kind wire.Kind, keys []godwit.Key, buf []float32) (served [3]uint64, ok bool) {
	w.miss = w.miss[:0]
	l := lookout{n: w.n, w: w, keys: keys, write: kind != wire.Pull}
	l.begin()
	t := &w.n.tables[0]
	off := 0
	for i := 0; i < len(keys); i++ {
		k := keys[i]
		if i == l.next {
			if n, floats := l.group(kind, buf[off:]); n > 0 {
				served[protocol.AtOwner] += uint64(n)
				i, off = i+n-1, off+floats
				continue
			}
		}
		if !t.has(k) {
			t = w.n.table(k)
		}
		vals := buf[off : off+t.dim]
		s := w.n.shard(k)
		h := l.row(i, t)
		p := protocol.Elsewhere
		ok = true
		switch {
		case h == nil && l.elsewhere(k):
			// Not here, as far as a look without the lock can tell. The request
			// looks again.
		case kind == wire.Pull && t.query != nil:
			p, ok = w.query(s, h, t, k, vals)
		case kind == wire.Pull:
			p, ok = s.pull(h, k, vals)
		default:
			p, ok = s.push(w.n, h, t, k, vals)
		}
		if !ok {
			return served, false
		}
		if served[p]++; p == protocol.Elsewhere {
			w.miss = append(w.miss, i, off)
		}
		off += t.dim
	}
	return served, true
}

// A lookout finds the rows of a call before it comes to them. A row that is
// not in the processor's cache costs several trips to memory, and what the
// processor begins by itself ends at each lock. So it is told what comes. Keys
// go through in groups: of one the index is fetched, of the next the addresses
// of rows, of the next the rows, one with each access to the group before it.
// The trips then overlap with one another and with the accesses.
type lookout struct {
	n      *Node
	w      *worker
	keys   []godwit.Key
	write  bool // the keys will be pushed to
	next   int  // the first position of the next group; -1: it does not pay to look ahead
	absent int  // of the last group: keys whose rows were to be made, or are away
	filled int  // up to where rows were made that were not there
	slots  [ahead]store.Slot
	rows   [2 * ahead]*store.Header
}

// ahead is how many keys make a group: enough for trips to memory to overlap,
// few enough for the rows of two to stay in the first cache.
const ahead = 16

func (l *lookout) begin() {
	if l.next = -1; l.n.large && len(l.keys) >= 4 {
		l.start(0)
	}
}

// start looks ahead from a position on.
func (l *lookout) start(first int) {
	l.next = first
	for i := range 3 {
		l.announce(first + i*ahead)
	}
	l.probe(first)
	l.find(first)
	for i, k := range l.part(first) {
		l.fetch(first+i, l.n.table(k))
	}
	l.probe(first + ahead)
}

// group looks ahead at the groups behind the one that begins. Where rows seem to
// be missing it has them made first, and may serve the group and some more by
// that: so many keys, with so many floats.
func (l *lookout) group(kind wire.Kind, buf []float32) (keys, floats int) {
	i := l.next
	if l.absent >= ahead/2 || i == l.filled && l.w.filler.on {
		if keys, floats = l.fill(kind, buf); keys > 0 {
			return keys, floats
		}
	}
	l.absent = 0
	l.next += ahead
	l.find(i + ahead)
	l.probe(i + 2*ahead)
	l.announce(i + 3*ahead)
	return 0, 0
}

// fill has rows made of the next keys.
func (l *lookout) fill(kind wire.Kind, buf []float32) (keys, floats int) {
	first := l.next
	l.filled = min(first+fillKeys, len(l.keys))
	if keys = l.filled - first; keys < ahead || l.w.filler.waits() {
		return 0, 0
	}
	if kind != wire.Pull {
		buf = nil
	}
	floats, served := l.w.fill(l.keys[first:l.filled], buf)
	if !served {
		l.start(first)
		return 0, 0
	}
	if l.filled < len(l.keys) {
		l.start(l.filled)
	}
	return keys, floats
}

// elsewhere reports whether a key whose row was not found has its home at another
// node. Else this node makes the row, unless the key has moved away.
func (l *lookout) elsewhere(k godwit.Key) bool {
	if l.n.homes.Home(k) != l.n.self {
		return true
	}
	l.absent++
	return false
}

// announce has the index of a group fetched.
func (l *lookout) announce(first int) {
	for _, k := range l.part(first) {
		l.n.shard(k).PrefetchIndex(k)
	}
}

// probe goes through the index, and has the addresses of a group's rows fetched.
func (l *lookout) probe(first int) {
	for i, k := range l.part(first) {
		l.slots[i] = l.n.shard(k).Probe(k)
		l.slots[i].Prefetch()
	}
}

// find takes the addresses of the group that was probed last.
func (l *lookout) find(first int) {
	rows := l.rows[first%(2*ahead):][:ahead]
	for i := range l.part(first) {
		rows[i] = l.slots[i].Row()
	}
}

// fetch has a row fetched whose address was found, with what its access needs.
func (l *lookout) fetch(i int, t *table) {
	h := l.rows[i%(2*ahead)]
	switch {
	case !l.write:
		store.Prefetch(h, t.dim)
	case len(l.n.workers) == 1: // the latch is near: asking for it would take longer than to miss it
		store.Prefetch(h, t.floats) // the rule's state as well
	default:
		l.n.shard(l.keys[i]).fetch()
		store.PrefetchToWrite(h, t.floats)
	}
}

// part is the keys of the group that begins with a position.
func (l *lookout) part(first int) []godwit.Key {
	return l.keys[min(first, len(l.keys)):min(first+ahead, len(l.keys))]
}

// row returns where the row of the key at a position seems to be. Positions
// must come one after the other; t is the key's table.
func (l *lookout) row(i int, t *table) *store.Header {
	if l.next < 0 {
		k := l.keys[i]
		return l.n.shard(k).Look(k)
	}
	if j := i + ahead; j < len(l.keys) { // most likely of the same table
		l.fetch(j, t)
	}
	return l.rows[i%(2*ahead)]
}

// pull copies the value of a key whose row was found, if it was. It reports
// false if the node was closed.
func (s *shard) pull(h *store.Header, k godwit.Key, dst []float32) (protocol.Place, bool) {
	if glances {
		if v, ok := s.Word(); ok {
			if p := protocol.ReadOptimistic(h, k, dst); p != protocol.Elsewhere && s.Unchanged(v) {
				return p, true
			}
		}
	}
	return s.pullLocked(h, k, dst)
}

// query is pull of a key whose table's rule makes what pulls get: of a copy of
// the row, so that no rule is asked about a row that changes meanwhile.
func (w *worker) query(s *shard, h *store.Header, t *table, k godwit.Key, dst []float32) (protocol.Place, bool) {
	if glances {
		if v, ok := s.Word(); ok {
			w.row = slices.Grow(w.row[:0], t.floats)[:t.floats]
			if p := protocol.ReadOptimistic(h, k, w.row); p != protocol.Elsewhere && s.Unchanged(v) {
				t.query.Query(dst, w.row[:t.dim:t.dim], w.row[t.dim:])
				return p, true
			}
		}
	}
	return s.pullLocked(h, k, dst)
}

func (s *shard) pullLocked(h *store.Header, k godwit.Key, dst []float32) (protocol.Place, bool) {
	s.Lock()
	defer s.Unlock()
	if s.over() {
		return protocol.Elsewhere, false
	}
	return s.PullAt(h, k, dst), true
}

// push applies the update rule likewise.
func (s *shard) push(n *Node, h *store.Header, t *table, k godwit.Key, push []float32) (protocol.Place, bool) {
	s.Lock()
	if s.closed {
		s.Unlock()
		return protocol.Elsewhere, false
	}
	p := protocol.AtOwner
	if !t.update.Push(h, k, push) {
		if s.starved.Load() {
			s.Unlock()
			return protocol.Elsewhere, false
		}
		p = s.PushAt(h, k, push)
		s.noteWork(n, k)
	}
	s.Unlock()
	return p, true
}
