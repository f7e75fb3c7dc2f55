package watch

import (
	"cmp"
	"math"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A Tracer writes what becomes of keys that are traced. Any goroutine may use it; a nil Tracer
// traces none.
type Tracer struct {
	to    *trace.Writer
	self  godwit.NodeID
	now   func() int64
	clock func() godwit.Clock

	few int // how many keys the model has; 0: more than fewKeys

	policy placement.Policy // see Asks
	hot    func(godwit.Key) bool
}

// NewTracer returns what a node traces by, whose time in nanoseconds and clock these are; nil if to is.
func NewTracer(to *trace.Writer, self godwit.NodeID, now func() int64, clock func() godwit.Clock) *Tracer {
	if to == nil {
		return nil
	}
	t := &Tracer{to: to, self: self, now: now, clock: clock}
	if n := to.Keys(); n <= fewKeys {
		t.few = int(n)
	}
	return t
}

// Happened writes what became of a key, if that is traced.
func (t *Tracer) Happened(e protocol.Event) {
	if t.to.Takes(e.Key, trace.Kind(e.Kind)) && !(e.Kind == protocol.Refreshed && t.to.CountsRefresh(e.Key)) {
		t.to.Add(trace.Event{Time: t.now(), Key: e.Key, Clock: t.clock(), Epoch: e.Epoch, Node: t.self, Peer: e.Peer, Kind: trace.Kind(e.Kind)})
	}
}

// With returns what tells the watch and a tracer what happened; nil if there is neither.
func (w *Watch) With(t *Tracer) func(protocol.Event) {
	switch {
	case w == nil && t == nil:
		return nil
	case t == nil:
		return w.Happened
	case w == nil:
		return t.Happened
	}
	return func(e protocol.Event) {
		w.Happened(e)
		t.Happened(e)
	}
}

// A Tally counts one worker's accesses of traced keys, by key and window. It belongs to the worker's
// goroutine. The zero Tally counts nothing.
type Tally struct {
	of     *Tracer
	few    []short // of a model of few keys: counts by key modulo 65,536, of untraced keys too
	counts []count // an open table of all else: of a key in the first free place from that on which its hash says
	used   int     // of the table
	next   int64   // when the window ends
}

// A short count is of a key whose number says which.
type short struct{ all, missed uint16 }

// A count is of a key; of none where all is 0.
type count struct {
	key         godwit.Key
	all, missed uint32
}

// Windows end after a second, and later where so many keys were accessed that there would be more than
// so many events a second.
const (
	window     = int64(1e9)
	tallyEvery = window / 5000
)

// Tally returns a tally for one worker.
func (t *Tracer) Tally() Tally {
	if t == nil {
		return Tally{}
	}
	return Tally{of: t, few: make([]short, t.few), counts: make([]count, leastCounts)}
}

// Accessed takes note of an access of keys.
func (t *Tally) Accessed(keys []godwit.Key) {
	if t.of != nil {
		for _, k := range keys {
			t.accessed(k)
		}
	}
}

// AccessedOne is Accessed of one key.
func (t *Tally) AccessedOne(k godwit.Key) {
	if t.of != nil {
		t.accessed(k)
	}
}

func (t *Tally) accessed(k godwit.Key) {
	if uint64(k) >= uint64(len(t.few)) {
		t.add(k, 1, 0)
	} else if c := &t.few[k]; c.all < math.MaxUint16 {
		c.all++
	} else {
		c.all = 0
		t.add(k, 1<<16, 0)
	}
}

// Missed takes note that of such keys these positions, each followed by something else, were not
// served at once.
func (t *Tally) Missed(keys []godwit.Key, positions []int) {
	if t.of != nil {
		for i := 0; i < len(positions); i += 2 {
			t.missed(keys[positions[i]])
		}
	}
}

func (t *Tally) missed(k godwit.Key) {
	if uint64(k) >= uint64(len(t.few)) {
		t.add(k, 0, 1)
	} else if c := &t.few[k]; c.missed < math.MaxUint16 {
		c.missed++
	} else {
		c.missed = 0
		t.add(k, 0, 1<<16)
	}
}

func (t *Tally) add(k godwit.Key, all, missed uint32) {
	if !t.of.to.Has(k) {
		return
	}
	c := t.at(k)
	if c.all+c.missed == 0 {
		if t.used++; 4*t.used > 3*len(t.counts) {
			t.grow()
			c = t.at(k)
		}
		c.key = k
	}
	c.all, c.missed = c.all+all, c.missed+missed
}

// at returns the place of a key, or the free one that it is to have.
func (t *Tally) at(k godwit.Key) *count {
	mask := len(t.counts) - 1
	for i := int(uint64(k) * 0x9e3779b97f4a7c15 >> 32); ; i++ {
		if c := &t.counts[i&mask]; c.all+c.missed == 0 || c.key == k {
			return c
		}
	}
}

// leastCounts is the length of the table of a worker that has accessed few keys.
const leastCounts = 1 << 10

func (t *Tally) grow() {
	old := t.counts
	t.counts = make([]count, 2*len(old))
	for _, c := range old {
		if c.all+c.missed > 0 {
			*t.at(c.key) = c
		}
	}
}

// Advanced ends the window if it is time to, or end is set. The worker is at a clock.
func (t *Tally) Advanced(at godwit.Clock, end bool) {
	if t.of == nil {
		return
	}
	now := t.of.now()
	if now < t.next && !end {
		return
	}
	e := trace.Event{Time: now, Clock: at, Node: t.of.self, Peer: t.of.self}
	n := 0
	add := func(k godwit.Key, kind trace.Kind, of uint32) {
		if e.Key, e.Kind, e.N = k, kind, of; of > 0 && t.of.to.Has(k) {
			t.of.to.Add(e)
			n++
		}
	}
	for k, c := range t.few {
		if c != (short{}) {
			add(godwit.Key(k), trace.Accessed, uint32(c.all))
			add(godwit.Key(k), trace.Missed, uint32(c.missed))
		}
	}
	clear(t.few)
	found := slices.DeleteFunc(t.counts, func(c count) bool { return c.all+c.missed == 0 })
	slices.SortFunc(found, func(a, b count) int { return cmp.Compare(a.key, b.key) })
	for _, c := range found {
		add(c.key, trace.Accessed, c.all)
		add(c.key, trace.Missed, c.missed)
	}
	clear(t.counts)
	t.used = 0
	t.next = now + max(window, int64(n)*tallyEvery)
}
