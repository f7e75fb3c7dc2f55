package watch

import (
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/histogram"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/protocol"
)

// sampleBits is the logarithm of how many keys there are for each of the sample.
const sampleBits = 8

// sampled reports whether a key is of the sample.
func sampled(k godwit.Key) bool { return uint64(k)*0x9e3779b97f4a7c15>>(64-sampleBits) == 0 }

// parts is how many parts the sample has, each with a lock.
const parts = 16

// part returns which part a key of the sample is of. Its bits of the hash are others than those that
// the sample is chosen by.
func part(k godwit.Key) int {
	return int(uint64(k) * 0x9e3779b97f4a7c15 >> (64 - sampleBits - 4) & (parts - 1))
}

// A Watch watches the keys of the sample. Any goroutine may use it. A nil Watch watches none.
type Watch struct {
	now   func() int64        // nanoseconds
	clock func() godwit.Clock // of the workers
	model *godwit.Model
	fates [parts]fates // by the last bits of the key, as shards are
	parts [parts]struct {
		preempt.Mutex
		lives  map[godwit.Key]*life
		counts Counts
	}
}

// A life is what is known of a sampled key that is wanted here, moved here, or has a replica here.
type life struct {
	accesses  uint64       // of this node's workers since the life began
	arrived   uint64       // accesses when the copy came
	refreshed uint64       // … when it was refreshed, or came
	intended  uint64       // … when the first intent became due
	at        int64        // when it was refreshed, or came
	clock     godwit.Clock // likewise
	kind      kind
	wanted    bool
}

// A kind says what is here of a key.
type kind uint8

const (
	nothing kind = iota
	replica
	main // which moved here
)

// Counts are what became of the keys of the sample.
type Counts struct {
	Accesses uint64 // by this node's workers

	Refreshes, Unread     uint64           // rows that came for replicas, the first ones as well, and were followed by the next one or the end; … and not accessed before
	Drops, DroppedUnread  uint64           // replicas that ended; … and were not accessed at all
	Intents, Unused       uint64           // of keys, that ended; … and were followed by no access of the key
	Touches               histogram.Counts // by keys that moved on from here: accesses since they had come
	AgeMicros, AgeInClock histogram.Counts // of replicas, when they were refreshed: since the refresh before
}

func (c *Counts) add(o *Counts) {
	c.Accesses += o.Accesses
	c.Refreshes += o.Refreshes
	c.Unread += o.Unread
	c.Drops += o.Drops
	c.DroppedUnread += o.DroppedUnread
	c.Intents += o.Intents
	c.Unused += o.Unused
	c.Touches.Add(&o.Touches)
	c.AgeMicros.Add(&o.AgeMicros)
	c.AgeInClock.Add(&o.AgeInClock)
}

// fates count what became of keys, by table. Those of one shard are counted under its lock, those of several
// without.
type fates struct {
	tables []fate
	_      [40]byte
}

type fate struct{ moves, copies, drops, refreshes atomic.Uint64 }

// New returns the watch of a node with such a model, time, in nanoseconds, and clock.
func New(m *godwit.Model, now func() int64, clock func() godwit.Clock) *Watch {
	w := &Watch{model: m, now: now, clock: clock}
	for i := range w.fates {
		w.fates[i].tables = make([]fate, m.Tables(), m.Tables()+2)
	}
	for i := range w.parts {
		w.parts[i].lives = map[godwit.Key]*life{}
	}
	return w
}

// Counts takes stock.
func (w *Watch) Counts() (c Counts) {
	if w == nil {
		return c
	}
	for i := range w.parts {
		p := &w.parts[i]
		p.Lock()
		c.add(&p.counts)
		p.Unlock()
	}
	return c
}

// Tables returns what became of keys, by table, of so many.
func (w *Watch) Tables(n int) []Table {
	ts := make([]Table, n)
	if w == nil {
		return ts
	}
	for i := range w.fates {
		for j := range w.fates[i].tables {
			t, f := &ts[j], &w.fates[i].tables[j]
			t.Moves += f.moves.Load()
			t.Copies += f.copies.Load()
			t.Drops += f.drops.Load()
			t.Refreshes += f.refreshes.Load()
		}
	}
	return ts
}

// count counts what became of a key.
func (w *Watch) count(e protocol.Event) {
	t, _ := w.model.Locate(e.Key)
	f := &w.fates[e.Key&(parts-1)].tables[t]
	switch e.Kind {
	case protocol.Arrived:
		f.moves.Add(1)
	case protocol.Copied:
		f.copies.Add(1)
	case protocol.Ended:
		f.drops.Add(1)
	case protocol.Refreshed:
		f.refreshes.Add(1)
	}
}

// Accessed takes note that a worker accesses keys, wherever they are.
func (w *Watch) Accessed(keys []godwit.Key) {
	if w == nil {
		return
	}
	for _, k := range keys {
		if sampled(k) {
			w.accessed(k)
		}
	}
}

// AccessedOne is Accessed of one key.
func (w *Watch) AccessedOne(k godwit.Key) {
	if w != nil && sampled(k) {
		w.accessed(k)
	}
}

func (w *Watch) accessed(k godwit.Key) {
	p := &w.parts[part(k)]
	p.Lock()
	p.counts.Accesses++
	if l := p.lives[k]; l != nil {
		l.accesses++
	}
	p.Unlock()
}

// Happened takes note of what became of a key.
func (w *Watch) Happened(e protocol.Event) {
	w.count(e)
	if !sampled(e.Key) {
		return
	}
	p := &w.parts[part(e.Key)]
	p.Lock()
	defer p.Unlock()
	l := p.lives[e.Key]
	if l == nil {
		l = new(life)
		p.lives[e.Key] = l
	}
	switch e.Kind {
	case protocol.Arrived:
		l.overwritten(&p.counts)
		l.kind, l.arrived = main, l.accesses
	case protocol.Left:
		if l.kind == main {
			p.counts.Touches.Observe(l.accesses - l.arrived)
		}
		l.kind = nothing
	case protocol.Copied:
		l.kind, l.arrived = replica, l.accesses
		w.refresh(l)
	case protocol.Refreshed:
		l.overwritten(&p.counts)
		p.counts.AgeMicros.Observe(uint64(max(0, w.now()-l.at)) / 1000)
		p.counts.AgeInClock.Observe(uint64(max(0, w.clock()-l.clock)))
		w.refresh(l)
	case protocol.Ended:
		l.overwritten(&p.counts)
		if p.counts.Drops++; l.accesses == l.arrived {
			p.counts.DroppedUnread++
		}
		l.kind = nothing
	case protocol.Wanted:
		l.wanted, l.intended = true, l.accesses
	case protocol.Unwanted:
		if p.counts.Intents++; l.accesses == l.intended {
			p.counts.Unused++
		}
		l.wanted = false
	}
	if l.kind == nothing && !l.wanted {
		delete(p.lives, e.Key)
	}
}

// refresh takes note that a row came for a replica.
func (w *Watch) refresh(l *life) {
	l.refreshed, l.at, l.clock = l.accesses, w.now(), w.clock()
}

// overwritten takes note that the row that last came for a replica is no more. Only now is it known whether it was read, so it is counted
// now: neither those that were read nor those that were not become fewer.
func (l *life) overwritten(c *Counts) {
	if l.kind != replica {
		return
	}
	if c.Refreshes++; l.accesses == l.refreshed {
		c.Unread++
	}
}
