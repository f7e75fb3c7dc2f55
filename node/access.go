package node

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/protocol"
	"github.com/godwit-ps/godwit/store"
	"github.com/godwit-ps/godwit/wire"
)

// This file is what a worker does with keys that are here: it should cost
// little more than to copy and to add.

// table is what an access needs to know of a table of the model.
type table struct {
	first godwit.Key
	rows  godwit.Key
	dim   int
}

func (t *table) has(k godwit.Key) bool { return k-t.first < t.rows }

func tablesOf(m *godwit.Model) []table {
	ts := make([]table, m.Tables())
	for i := range ts {
		ts[i] = table{m.Key(i, 0), godwit.Key(m.Table(i).Rows), m.Table(i).Dim}
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

// ahead is for how many keys of a call the processor is told what comes: enough
// for trips to memory to overlap, few enough for its queue of them.
const ahead = 16

// local serves the keys of a call that are here, and leaves the position and
// the offset of the others in w.miss. It reports how many were served where,
// and whether the node was open all the time.
func (w *worker) local(kind wire.Kind, keys []godwit.Key, buf []float32) (served [3]uint64, ok bool) {
	w.miss = w.miss[:0]
	var rows [ahead]*store.Header
	t := &w.n.tables[0]
	off := 0
	for done := 0; done < len(keys); done += ahead {
		group := keys[done:min(done+ahead, len(keys))]
		w.n.look(group, &rows)
		for i, k := range group {
			if !t.has(k) {
				t = w.n.table(k)
			}
			vals := buf[off : off+t.dim]
			s := w.n.shard(k)
			p := protocol.Elsewhere
			ok = true
			switch {
			case rows[i] == nil && w.n.homes.Home(k) != w.n.self:
				// Not here, as far as a look without the lock can tell. The request
				// looks again.
			case kind == wire.Pull:
				p, ok = s.pull(rows[i], k, vals)
			default:
				p, ok = s.push(w.n, rows[i], k, vals)
			}
			if !ok {
				return served, false
			}
			if served[p]++; p == protocol.Elsewhere {
				w.miss = append(w.miss, done+i, off)
			}
			off += t.dim
		}
	}
	return served, true
}

// look finds the rows of some keys, and has them fetched into the processor's
// cache. Found one after the other, each key would wait for its own two trips
// to memory.
func (n *Node) look(keys []godwit.Key, rows *[ahead]*store.Header) {
	if !n.large || len(keys) < 4 {
		for i, k := range keys {
			rows[i] = n.shard(k).Look(k)
		}
		return
	}
	for _, k := range keys {
		n.shard(k).AheadIndex(k)
	}
	for i, k := range keys {
		rows[i] = n.shard(k).AheadRow(k)
	}
}

// pull copies the value of a key whose row was found, if it was. It reports
// false if the node was closed.
func (s *shard) pull(h *store.Header, k godwit.Key, dst []float32) (protocol.Place, bool) {
	if glances {
		if v, ok := s.Word(); ok {
			if p := protocol.Glance(h, k, dst); p != protocol.Elsewhere && s.Unchanged(v) {
				return p, true
			}
		}
	}
	s.Lock()
	defer s.Unlock()
	if s.closed {
		return protocol.Elsewhere, false
	}
	return s.PullAt(h, k, dst), true
}

// push applies the update rule likewise.
func (s *shard) push(n *Node, h *store.Header, k godwit.Key, push []float32) (protocol.Place, bool) {
	s.Lock()
	if s.closed {
		s.Unlock()
		return protocol.Elsewhere, false
	}
	p := s.PushAt(h, k, push)
	s.noteWork(n, k)
	s.Unlock()
	return p, true
}
