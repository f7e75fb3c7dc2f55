package shards

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
)

// A prefetcher finds the rows of a call before it comes to them. A row that is
// not in the processor's cache costs several trips to memory, and what the
// processor begins by itself ends at each lock. So it is told what comes: of a block of
// keys first the index is fetched, then the addresses of rows, and then the rows, those of
// some keys while the keys before are accessed. The trips of a kind then overlap with one
// another, and those to rows with the accesses.
type prefetcher struct {
	s      *Set
	a      *Access
	keys   []godwit.Key
	write  bool            // the keys will be pushed to
	ahead  bool            // it pays to look ahead
	rows   []*store.Header // of the block's keys, as far as they seem to be here
	first  int             // the first position of the block
	known  int             // the end of the block
	seen   int             // how many keys the last step had
	absent int             // … and how many whose rows were to be made, or are away
	filled int             // up to where rows were made that were not there
}

// step is how many keys are accessed while the rows of as many are fetched. Fewer fetched at a
// time overlap less.
const step = 64

// few keys are looked up one by one.
const few = 3

// next returns where the rows seem to be of the next keys, step at the most. It has those
// fetched that come then. t is the table of the last key.
func (l *prefetcher) next(first int, t *Table) []*store.Header {
	if first == l.known {
		l.look(first)
		l.fetch(first, t)
	}
	l.fetch(first+step, t)
	rows := l.part(first)
	l.seen, l.absent = len(rows), 0
	return rows
}

// look finds the rows of the block that begins with a position.
func (l *prefetcher) look(first int) {
	l.first, l.known = first, min(first+store.GroupKeys, len(l.keys))
	g, keys := &l.a.group, l.keys[first:l.known]
	l.rows = g.Rows[:len(keys)]
	if len(keys) <= few {
		for i, k := range keys {
			l.rows[i] = l.s.shard(k).Look(k)
		}
		return
	}
	if rows := l.a.recall.Rows(first, keys, l.write); rows != nil && (!l.write || l.absentElsewhere(keys, rows)) { // most pushes are of keys that were just pulled
		l.rows = rows
		return
	}
	for i, k := range keys {
		g.Finders[i] = l.s.shard(k).Finder
	}
	if l.ahead {
		g.PrefetchIndex(keys)
	}
	g.Look(keys)
	if !l.write {
		l.a.recall.Note(keys, l.rows)
	}
}

// absentElsewhere reports whether all keys that had no rows have their homes elsewhere: those of others have most likely been made.
func (l *prefetcher) absentElsewhere(keys []godwit.Key, rows []*store.Header) bool {
	for i, h := range rows {
		if h == nil && !l.s.homedElsewhere(keys[i]) {
			return false
		}
	}
	return true
}

// missing reports whether rows seem to be missing from a position on.
func (l *prefetcher) missing(first int) bool {
	return l.ahead && (l.mostAbsent() || first == l.filled && l.a.filler.on)
}

// mostAbsent reports whether the last step found few rows. Then the next keys have none
// either, probably, also those of the next call.
func (l *prefetcher) mostAbsent() bool { return l.seen >= together && 2*l.absent >= l.seen }

// together is how many keys it takes for their rows to be made together.
const together = 16

// fill has rows made of the next keys. That may serve the group that begins, and more: fill
// returns how many keys it served, and how many floats they have.
func (l *prefetcher) fill(first int, kind wire.Kind, buf []float32) (keys, floats int) {
	l.filled = min(first+fillKeys, len(l.keys))
	if keys = l.filled - first; keys < together || l.a.filler.waits() {
		return 0, 0
	}
	if kind != wire.Pull {
		buf = nil
	}
	floats, served := l.a.fill(l.keys[first:l.filled], buf)
	if !served {
		l.known = first
		return 0, 0
	}
	l.known = l.filled
	return keys, floats
}

// elsewhere reports whether a key whose row was not found has its home at another
// node. Else this node makes the row, unless the key has moved away.
func (l *prefetcher) elsewhere(k godwit.Key) bool {
	if l.s.homedElsewhere(k) {
		return true
	}
	l.absent++
	return false
}

// fetch has rows of the block fetched from a position on, and, of keys that are pushed, the locks of their shards.
func (l *prefetcher) fetch(first int, t *Table) {
	if !l.ahead {
		return
	}
	floats := t.Dim
	if l.write {
		floats = t.Floats // the rule's state as well
		for _, k := range l.keys[min(first, l.known):min(first+step, l.known)] {
			l.s.guards[k&l.s.mask].prefetch()
		}
	}
	store.PrefetchEach(l.part(first), floats)
}

// part is the rows of the block from a position on, step at the most.
func (l *prefetcher) part(first int) []*store.Header {
	i := min(first-l.first, len(l.rows))
	return l.rows[i:min(i+step, len(l.rows))]
}
