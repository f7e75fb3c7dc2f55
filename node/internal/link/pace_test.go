package link

import (
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/transport/mem"
)

func TestAPaceIsThatOfTheLastMeasures(t *testing.T) {
	var p pace
	if p.strained(1 << 40) {
		t.Error("a link on which nothing was measured is strained")
	}
	for _, x := range []struct {
		each float64 // nanoseconds
		most int     // bytes that are taken in time
	}{{8, 125_000}, {0.8, 1_250_000}, {80, 12_500}, {8, 125_000}} {
		for range paces {
			p.measure(x.each)
		}
		if p.strained(x.most-1) || !p.strained(x.most+1) {
			t.Errorf("a byte takes %v ns, want %v", p.each, x.each)
		}
	}
	p.measure(0) // one burst that the network took at once
	if p.strained(140_000) || !p.strained(145_000) {
		t.Errorf("a byte takes %v ns, want 7", p.each)
	}
}

// A told connection has the pace that a test gives it.
type told struct {
	transport.Conn
	rate   uint64
	unsent int
	asked  int
}

func (c *told) Pace() (uint64, int) { c.asked++; return c.rate, c.unsent }
func (c *told) Unsent() int         { return c.unsent }

// Refreshes and deltas are put in as long as the network takes what is queued, here and in the system, soon.
func TestCopiesWaitWhereTheNetworkIsBusy(t *testing.T) {
	for _, x := range []struct {
		each float64 // nanoseconds that a byte takes; 0: not known
		most int     // bytes queued with which more may be put in
	}{{0, 1 << 20}, {0.01, 1 << 20}, {0.5, 200_000}, {1, 100_000}, {8, fewCopies}} {
		var q queue
		q.pace.each = x.each
		for _, q.unsent = range []int{0, 10_000} {
			if q.queued = x.most - 1 - q.unsent; !q.roomForCopies(1 << 20) {
				t.Errorf("with %v ns a byte, %d bytes queued and %d unsent leave no room", x.each, q.queued, q.unsent)
			}
			if q.queued++; q.roomForCopies(1 << 20) {
				t.Errorf("with %v ns a byte, %d bytes queued and %d unsent leave room", x.each, q.queued, q.unsent)
			}
		}
	}
}

// A system that holds much back keeps copies from being put in, until a round finds that it has sent that. Answers go in.
func TestWhatTheSystemHasNotSentIsAskedForAgain(t *testing.T) {
	c := &told{rate: 1e9, unsent: 1 << 20}
	ls := New(host.New(host.Real()), 0, 2, 1, host.Usual, filter.Compress{}, host.NewBell())
	c.Conn, _ = ends(t, &mem.Switch{}, "127.0.0.1:0")
	ls.Connect(1, c)
	o, s := ls.To(1), ls.Sender()
	o.measure(measured)
	if s.Room(1) || !s.Full(1) || !s.Takes(1) {
		t.Error("copies go in, or answers do not, while the system holds a megabyte back")
	}
	if s.ForgetFull(); s.Room(1) {
		t.Error("copies go in though the system still holds it back")
	}
	c.unsent = 0
	if s.Room(1) {
		t.Error("the system was asked in the middle of a round")
	}
	if s.ForgetFull(); !s.Room(1) || s.Full(1) {
		t.Error("copies do not go in after the system has sent all")
	}
}

func TestAConnectionIsAskedForItsPaceNowAndThen(t *testing.T) {
	for _, x := range []struct {
		rate uint64
		want float64
	}{{125e6, 8}, {0, 0}} {
		c := &told{rate: x.rate}
		l := &Link{pacer: c}
		for range 100 {
			l.measure(measured/10 + 1)
		}
		if l.pace.each != x.want || c.asked != 10 {
			t.Errorf("at %d bytes a second, a byte takes %v ns, want %v; asked %d times, want 10", x.rate, l.pace.each, x.want, c.asked)
		}
	}
	(&Link{}).measure(measured) // a connection that does not know
}

// A timed world has the time that a test gives it.
type timed struct {
	host.World
	now int64
}

func (w *timed) Now() int64 { return w.now }

// The interface of a simulated node takes the next frame when the one before has left.
func TestAWayIsStrainedWhileMoreIsQueuedThanItTakesInTime(t *testing.T) {
	w := &timed{World: host.Real(), now: 1}
	ls := New(host.New(w), 0, 3, 1, host.Usual, filter.Compress{}, host.NewBell())
	for peer := godwit.NodeID(1); peer < 3; peer++ {
		ls.Imagine(peer, func() {})
	}
	out := ls.Sender()
	row := &wire.Record{Kind: wire.Set, Key: 1, Vals: make([]float32, 16<<10)} // 64 KiB
	var buf []byte
	empty := func(pace time.Duration) {
		for {
			if buf = ls.To(1).Take(buf); len(buf) == 0 {
				return
			}
			w.now += int64(pace) * int64(len(buf)) / 1000
		}
	}
	for range 20 {
		out.Send(1, row)
	}
	if out.Strained(1) {
		t.Error("a way is strained before anything was measured")
	}
	empty(8 * time.Microsecond) // 1000 bytes at 1 Gbit/s
	if out.Strained(1) {
		t.Error("a way is strained on which nothing waits")
	}
	if most := 2 * 124_000; out.StrainedBy(most) || !out.StrainedBy(most+4000) {
		t.Error("125,000 bytes take a millisecond at 1 Gbit/s")
	}
	out.Send(1, row)
	if out.Strained(1) {
		t.Error("half a millisecond strains a way")
	}
	out.Send(1, row)
	if !out.Strained(1) || out.Strained(2) || out.Strained(0) {
		t.Errorf("strained: %v, the way to another peer: %v, to itself: %v, want the first only", out.Strained(1), out.Strained(2), out.Strained(0))
	}
	empty(0)
	if out.Strained(1) {
		t.Error("a way is strained when all has left")
	}
}

// Copies crowd a way earlier than values strain it, and for some time after they have left.
func TestAWayIsCrowdedForSomeTimeAfterMoreWasQueuedThanItTakes(t *testing.T) {
	w := &timed{World: host.Real(), now: 1}
	ls := New(host.New(w), 0, 3, 1, host.Usual, filter.Compress{}, host.NewBell())
	for peer := godwit.NodeID(1); peer < 3; peer++ {
		ls.Imagine(peer, func() {})
	}
	row := &wire.Record{Kind: wire.Set, Key: 1, Vals: make([]float32, 12<<10)} // 48 KiB
	var buf []byte
	empty := func(peer godwit.NodeID) {
		for {
			if buf = ls.To(peer).Take(buf); len(buf) == 0 {
				return
			}
			w.now += 8 * int64(len(buf)) / 10 // nanoseconds at 10 Gbit/s
		}
	}
	crowded := func(peer godwit.NodeID) bool {
		s := ls.Sender() // whoever asks
		return s.Crowded(peer)
	}
	out := ls.Sender()
	for range 20 {
		out.Send(1, row)
	}
	empty(1)
	out.Send(1, row)
	if crowded(1) {
		t.Error("39 µs of copies crowd a way")
	}
	out.Send(1, row)
	if !crowded(1) || crowded(2) || crowded(0) || out.Strained(1) {
		t.Errorf("crowded: %v, the way to another peer: %v, to itself: %v, strained: %v, want the first only", crowded(1), crowded(2), crowded(0), out.Strained(1))
	}
	empty(1)
	if w.now += 9 * int64(time.Millisecond); !crowded(1) {
		t.Error("a way is crowded no more as soon as all has left")
	}
	if w.now += int64(time.Millisecond); crowded(1) {
		t.Error("a way stays crowded for longer than 10 ms")
	}
}
