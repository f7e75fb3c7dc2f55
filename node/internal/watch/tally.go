package watch

import (
	"cmp"
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

	policy placement.Policy // see Asks
	hot    func(godwit.Key) bool
}

// NewTracer returns what a node traces by, whose time in nanoseconds and clock these are; nil if to is.
func NewTracer(to *trace.Writer, self godwit.NodeID, now func() int64, clock func() godwit.Clock) *Tracer {
	if to == nil {
		return nil
	}
	return &Tracer{to: to, self: self, now: now, clock: clock}
}

// Happened writes what became of a key, if that is traced.
func (t *Tracer) Happened(e protocol.Event) {
	if t.to.Takes(e.Key, trace.Kind(e.Kind)) {
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
	counts []count // an open table: of a key in the first free place from that on which its hash says
	used   int
	next   int64 // when the window ends
}

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
	return Tally{of: t, counts: make([]count, leastCounts)}
}

// Accessed takes note of an access of keys.
func (t *Tally) Accessed(keys []godwit.Key) {
	if t.of != nil {
		for _, k := range keys {
			t.add(k, 1, 0)
		}
	}
}

// AccessedOne is Accessed of one key.
func (t *Tally) AccessedOne(k godwit.Key) {
	if t.of != nil {
		t.add(k, 1, 0)
	}
}

// Missed takes note that of such keys these positions, each followed by something else, were not
// served at once.
func (t *Tally) Missed(keys []godwit.Key, positions []int) {
	if t.of != nil {
		for i := 0; i < len(positions); i += 2 {
			t.add(keys[positions[i]], 0, 1)
		}
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
	t.next = now + max(window, int64(t.used)*tallyEvery)
	found := slices.DeleteFunc(t.counts, func(c count) bool { return c.all+c.missed == 0 })
	slices.SortFunc(found, func(a, b count) int { return cmp.Compare(a.key, b.key) })
	for _, c := range found {
		e := trace.Event{Time: now, Key: c.key, Clock: at, N: c.all, Node: t.of.self, Peer: t.of.self, Kind: trace.Accessed}
		t.of.to.Add(e)
		if c.missed > 0 {
			e.Kind, e.N = trace.Missed, c.missed
			t.of.to.Add(e)
		}
	}
	clear(t.counts)
	t.used = 0
}
