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
	looked int
}

func (c *told) Pace() (uint64, int) { c.asked++; return c.rate, c.unsent }
func (c *told) Unsent() int         { c.looked++; return c.unsent }

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
	for _, c.unsent = range []int{1, 0} {
		c.looked = 0
		o.measure(measured)
		if s.ForgetFull(); c.looked != c.unsent {
			t.Errorf("a system that had %d bytes left is asked again %d times", c.unsent, c.looked)
		}
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
	c := &told{rate: 1}
	l := &Link{pacer: c}
	for i, bytes := range []int{measured - 1, 1, measured - 1, 1} {
		if l.measure(bytes); c.asked != (i+1)/2 || c.asked > 0 && l.pace.each != 1e9 {
			t.Errorf("step %d: asked %d times, want %d; a byte takes %v ns", i, c.asked, (i+1)/2, l.pace.each)
		}
	}
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

// What takes exactly so long neither strains nor crowds a way.
func TestAWayIsStrainedAndCrowdedByMoreThanItTakesInTime(t *testing.T) {
	s := imagined(2).Sender()
	o := s.ls.To(1)
	o.pace.each, o.queued = 8, 125_000
	if s.Strained(1) || !s.StrainedBy(1) {
		t.Error("a way is strained by what takes a millisecond")
	}
	p := pace{each: 8}
	if p.strained(125_000) || !p.strained(125_001) {
		t.Error("a way is strained by a millisecond")
	}
	if p.crowded(6250, 5) || !p.crowded(6251, 5) || !p.crowded(0, 4+calm) || p.crowded(0, 5+calm) {
		t.Error("a way is crowded by 50 µs, or for another time than 10 ms")
	}
}

// A measure is of a time in which something waited all along, and of 32 KiB at the least.
func TestAMeasureIsOfATimeInWhichSomethingWaited(t *testing.T) {
	var w stopwatch
	var p pace
	take := func(more bool, now int64, bytes int) {
		w.taken(more, now, &p)
		w.bytes += bytes
	}
	take(true, 1000, measured-1)
	take(true, 2000, 1)
	if p.n != 0 {
		t.Errorf("a measure of %d bytes counts", measured-1)
	}
	if take(true, 1000+2*measured, measured); p.n != 1 || p.each != 2 {
		t.Errorf("%d measures, and a byte takes %v ns, want 2", p.n, p.each)
	}
	if take(false, 1000+6*measured, 0); p.n != 2 || p.last[1] != 4 {
		t.Errorf("the next measure does not begin with the one before: a byte takes %v ns, want 4", p.last[1])
	}
	take(false, 1000+7*measured, 0)
	take(true, 1000+8*measured, measured)
	if take(false, 1000+9*measured, 0); p.n != 3 || p.last[2] != 1 {
		t.Errorf("the time in which nothing waited counts: a byte takes %v ns, want 1", p.last[2])
	}
}

func TestANodeThatIsAloneIsNotStrained(t *testing.T) {
	s := imagined(1).Sender()
	if s.StrainedBy(1 << 40) {
		t.Error("ways that are not there are strained")
	}
}
