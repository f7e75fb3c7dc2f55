package watch

import (
	"maps"
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
	if t.to.Has(e.Key) {
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
	counts map[godwit.Key]count
	next   int64 // when the window ends
}

type count struct{ all, missed uint32 }

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
	return Tally{of: t, counts: map[godwit.Key]count{}}
}

// Accessed takes note of an access of keys.
func (t *Tally) Accessed(keys []godwit.Key) {
	if t.of != nil {
		for _, k := range keys {
			t.add(k, count{all: 1})
		}
	}
}

// AccessedOne is Accessed of one key.
func (t *Tally) AccessedOne(k godwit.Key) {
	if t.of != nil {
		t.add(k, count{all: 1})
	}
}

// Missed takes note that of such keys these positions, each followed by something else, were not
// served at once.
func (t *Tally) Missed(keys []godwit.Key, positions []int) {
	if t.of != nil {
		for i := 0; i < len(positions); i += 2 {
			t.add(keys[positions[i]], count{missed: 1})
		}
	}
}

func (t *Tally) add(k godwit.Key, c count) {
	if t.of.to.Has(k) {
		x := t.counts[k]
		t.counts[k] = count{x.all + c.all, x.missed + c.missed}
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
	t.next = now + max(window, int64(len(t.counts))*tallyEvery)
	for _, k := range slices.Sorted(maps.Keys(t.counts)) {
		c := t.counts[k]
		e := trace.Event{Time: now, Key: k, Clock: at, N: c.all, Node: t.of.self, Peer: t.of.self, Kind: trace.Accessed}
		t.of.to.Add(e)
		if c.missed > 0 {
			e.Kind, e.N = trace.Missed, c.missed
			t.of.to.Add(e)
		}
	}
	clear(t.counts)
}
