package shards

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
)

// A prefetcher finds the rows of a call before it comes to them. A row that is
// not in the processor's cache costs several trips to memory, and what the
// processor begins by itself ends at each lock. So it is told what comes. Keys
// go through in groups: of one the index is fetched, of the next the addresses
// of rows, of the next the rows, one with each access to the group before it.
// The trips then overlap with one another and with the accesses.
type prefetcher struct {
	s      *Set
	a      *Access
	keys   []godwit.Key
	write  bool // the keys will be pushed to
	next   int  // the first position of the next group; -1: it does not pay to look ahead
	absent int  // of the last group: keys whose rows were to be made, or are away
	filled int  // up to where rows were made that were not there
	slots  [prefetched]store.Slot
	rows   [2 * prefetched]*store.Header
}

// prefetched is how many keys make a group: enough for trips to memory to overlap,
// few enough for the rows of two to stay in the first cache.
const prefetched = 16

func (l *prefetcher) begin() {
	if l.next = -1; l.s.large && len(l.keys) >= 4 {
		l.start(0)
	}
}

// start looks ahead from a position on.
func (l *prefetcher) start(first int) {
	l.next = first
	for i := range 3 {
		l.prefetchIndex(first + i*prefetched)
	}
	l.probe(first)
	l.find(first)
	for i, k := range l.part(first) {
		l.fetch(first+i, l.s.Table(k))
	}
	l.probe(first + prefetched)
}

// group looks ahead at the groups behind the one that begins. Where rows seem to
// be missing it has them made first. That may serve the group, and more: group returns how
// many keys it served, and how many floats they have.
func (l *prefetcher) group(kind wire.Kind, buf []float32) (keys, floats int) {
	i := l.next
	if l.absent >= prefetched/2 || i == l.filled && l.a.filler.on {
		if keys, floats = l.fill(kind, buf); keys > 0 {
			return keys, floats
		}
	}
	l.absent = 0
	l.next += prefetched
	l.find(i + prefetched)
	l.probe(i + 2*prefetched)
	l.prefetchIndex(i + 3*prefetched)
	return 0, 0
}

// fill has rows made of the next keys.
func (l *prefetcher) fill(kind wire.Kind, buf []float32) (keys, floats int) {
	first := l.next
	l.filled = min(first+fillKeys, len(l.keys))
	if keys = l.filled - first; keys < prefetched || l.a.filler.waits() {
		return 0, 0
	}
	if kind != wire.Pull {
		buf = nil
	}
	floats, served := l.a.fill(l.keys[first:l.filled], buf)
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
func (l *prefetcher) elsewhere(k godwit.Key) bool {
	if l.s.proto.Homes.Home(k) != l.s.proto.Self {
		return true
	}
	l.absent++
	return false
}

// prefetchIndex has the index of a group fetched.
func (l *prefetcher) prefetchIndex(first int) {
	for _, k := range l.part(first) {
		l.s.shard(k).PrefetchIndex(k)
	}
}

// probe goes through the index, and has the addresses of a group's rows fetched.
func (l *prefetcher) probe(first int) {
	for i, k := range l.part(first) {
		l.slots[i] = l.s.shard(k).Probe(k)
		l.slots[i].Prefetch()
	}
}

// find takes the addresses of the group that was probed last.
func (l *prefetcher) find(first int) {
	rows := l.rows[first%(2*prefetched):][:prefetched]
	for i := range l.part(first) {
		rows[i] = l.slots[i].Row()
	}
}

// fetch has a row fetched whose address was found, with what its access needs.
func (l *prefetcher) fetch(i int, t *Table) {
	h := l.rows[i%(2*prefetched)]
	switch {
	case !l.write:
		store.Prefetch(h, t.Dim)
	case l.s.workers == 1: // the latch is near: asking for it would take longer than to miss it
		store.Prefetch(h, t.Floats) // the rule's state as well
	default:
		l.s.shard(l.keys[i]).prefetch()
		store.PrefetchToWrite(h, t.Floats)
	}
}

// part is the keys of the group that begins with a position.
func (l *prefetcher) part(first int) []godwit.Key {
	return l.keys[min(first, len(l.keys)):min(first+prefetched, len(l.keys))]
}

// row returns where the row of the key at a position seems to be. Positions
// must come one after the other; t is the key's table.
func (l *prefetcher) row(i int, t *Table) *store.Header {
	if l.next < 0 {
		k := l.keys[i]
		return l.s.shard(k).Look(k)
	}
	if j := i + prefetched; j < len(l.keys) { // most likely of the same table
		l.fetch(j, t)
	}
	return l.rows[i%(2*prefetched)]
}
