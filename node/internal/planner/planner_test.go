package planner

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/protocol/intent"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/placement"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

const keys = 4000

// A desk is a planner of node 0 of two, of which the other takes nothing, and its one worker.
type desk struct {
	*Planner
	*Announcer
	clock   *tick.Clock
	homes   [2][]godwit.Key // the keys by their home
	flushed atomic.Int32    // how often something was sent
}

// deskOf returns a desk whose planner does not run yet.
func deskOf(t *testing.T, policy placement.Policy, eager bool) *desk {
	t.Helper()
	cfg := roomtest.Protocol(t, 0, 2, policy, 6, godwit.Table{Name: "t", Rows: keys, Dim: 1})
	h, bell := host.New(host.Real()), host.NewBell()
	ls := link.New(h, 0, 2, 1, host.Usual, filter.Compress{}, bell)
	d := &desk{}
	ls.Imagine(1, func() { d.flushed.Add(1) })
	rows, err := shards.New(cfg, 4*keys, store.HeapAlloc, bell)
	roomtest.Must(t, err)
	clocks := tick.NewClocks(0, 1, 0)
	d.Planner, d.clock = New(h, rows, ls, host.NewBudget(1, 2), clocks, eager, nil), clocks[0]
	d.Announcer = d.Of(0)
	for k := godwit.Key(0); k < keys; k++ {
		home := cfg.Homes.Home(k)
		d.homes[home] = append(d.homes[home], k)
	}
	t.Cleanup(func() { h.Halt(); h.Join() })
	return d
}

// run begins the planner's goroutine.
func (d *desk) run() { d.host.Go(d.Run) }

// advance has the worker go on to a clock.
func (d *desk) advance(to godwit.Clock) {
	for d.clock.Now() < to {
		d.Advanced(d.clock.Advance(), d.pace.waited.Load())
	}
}

// announce announces keys, of a worker that made no calls.
func (d *desk) announce(t *testing.T, keys []godwit.Key, start, end godwit.Clock) {
	t.Helper()
	roomtest.Must(t, d.Announce(keys, start, end, false))
}

// wanted reports how many of some keys the node wants.
func (d *desk) wanted(keys []godwit.Key) (some int) {
	for _, k := range keys {
		if d.rows.Holding(k).Wanted {
			some++
		}
	}
	return some
}

// A hooked policy is Adaptive, and calls a function when a planner begins or ends
// an intent.
type hooked struct {
	placement.Policy
	hook atomic.Pointer[func()] // called once
}

func (h *hooked) OnIntent(hot bool) placement.Ask {
	if f := h.hook.Swap(nil); f != nil {
		(*f)()
	}
	return h.Policy.OnIntent(hot)
}

// inPass halts the planner the next time that it begins or ends an intent. It returns
// what is closed then, and what lets it go on.
func (h *hooked) inPass() (reached chan struct{}, goOn func()) {
	reached, on := make(chan struct{}), make(chan struct{})
	halt := func() { close(reached); <-on }
	h.hook.Store(&halt)
	return reached, func() { close(on) }
}

func TestAnIntentBeginsAndEndsForEachOfItsKeys(t *testing.T) {
	d := deskOf(t, placement.Adaptive, false)
	d.run()
	some := slices.Concat(d.homes[0][:1000], d.homes[1][:1000])
	said := slices.Clone(some)
	d.announce(t, said, 0, 3)
	clear(said) // they belong to the caller
	roomtest.Eventually(t, "all keys are wanted", func() bool { return d.wanted(some) == len(some) })
	if n := d.Announcer.held.keys.Load(); n != int64(len(some)) || d.Planner.Held() != n {
		t.Errorf("%d keys count as announced, of the node's workers %d, want %d", n, d.Planner.Held(), len(some))
	}
	d.advance(3)
	roomtest.Eventually(t, "no key is wanted any more", func() bool { return d.wanted(some) == 0 })
	roomtest.Eventually(t, "nothing counts as announced", func() bool { return d.Announcer.held.keys.Load() == 0 })
	if all := d.homes[0]; d.wanted(all[1000:]) != 0 {
		t.Error("a key is wanted that nobody announced")
	}
}

// A worker fetches the values of steps while they are long. Those that it has not fetched when they get short, the planner acts on.
func TestAStepThatTheWorkerReturnsIsWanted(t *testing.T) {
	d := deskOf(t, placement.Adaptive, false)
	long, short := intent.Pace{Long: 1000, Fetched: true}, intent.Pace{Took: 10, Long: 1000}
	if !long.Fetches() || short.Fetches() {
		t.Fatal("the test is vacuous")
	}
	d.Steps(long)
	some := d.homes[1][:100]
	roomtest.Must(t, d.Announce(some[:50], 3, 4, true))
	roomtest.Must(t, d.Announce(some[50:], 4, 5, true))
	d.act()
	if n := d.wanted(some); n != 0 {
		t.Fatalf("the planner wants %d keys that the worker is to fetch", n)
	}
	d.Steps(short)
	steps := d.TakeDue()
	if len(steps) != 2 || steps[0].At != 3 || steps[1].At != 4 {
		t.Fatalf("the worker is to fetch %v", steps)
	}
	for _, s := range steps {
		d.Return(s)
	}
	d.run()
	d.advance(1) // which alone wakes no planner
	roomtest.Eventually(t, "all keys are wanted, and count as announced once", func() bool {
		return d.wanted(some) == len(some) && d.Announcer.held.keys.Load() == int64(len(some))
	})
	roomtest.Eventually(t, "no key is wanted any more", func() bool {
		d.advance(d.clock.Now() + 1)
		return d.wanted(some) == 0 && d.Announcer.held.keys.Load() == 0
	})
}

// The keys of a step stay wanted for some windows, as a later step may use them again; those of an intent of several steps do not, as its
// end was said.
func TestTheKeysOfAStepStayWantedForSomeTime(t *testing.T) {
	d := deskOf(t, placement.Adaptive, false)
	w := &steppedWorld{World: d.host.World}
	d.host.World = w
	advance := func(to godwit.Clock) { // a clock each 20 µs: a window of more than 100
		w.now += int64(to-d.clock.Now()) * int64(20*time.Microsecond)
		d.advance(to)
		d.act()
	}
	d.Steps(intent.Pace{Took: 10, Long: 1000})
	step, several := d.homes[1][:10], d.homes[1][10:20]
	roomtest.Must(t, d.Announce(step, 3, 4, true))
	roomtest.Must(t, d.Announce(several, 2, 4, false))
	d.act()
	if a, b := d.wanted(step), d.wanted(several); a != 10 || b != 10 {
		t.Fatalf("%d and %d keys are wanted, want all", a, b)
	}
	advance(4)
	if a, b := d.wanted(step), d.wanted(several); a != 10 || b != 0 {
		t.Errorf("after their end %d keys of a step are wanted, and %d of an intent of several", a, b)
	}
	stay := d.timer.Stay()
	if stay < 2*d.timer.Window() {
		t.Errorf("they stay for %d clocks, at a window of %d", stay, d.timer.Window())
	}
	if stay <= lookAgain {
		t.Errorf("they stay for %d clocks, want more than %d", stay, lookAgain)
	}
	for d.wanted(step) > 0 {
		if d.clock.Now() > 4+2*stay {
			t.Fatalf("at clock %d, they are still wanted", d.clock.Now())
		}
		now, next := d.clock.Now(), godwit.Clock(d.Announcer.next.Load())
		if next <= now || next > now+lookAgain {
			t.Fatalf("at clock %d, the planner looks again at %d", now, next)
		}
		advance(next)
	}
	if d.Held() != 0 {
		t.Errorf("%d keys count as announced", d.Held())
	}
}

// Behind a barrier, keys of the steps before whose main copies are here do not stay wanted, as another node may be about to use them alone. Others
// do, as they are used by several nodes.
func TestMainCopiesDoNotStayWantedBehindABarrier(t *testing.T) {
	d := deskOf(t, placement.Adaptive, false)
	d.Steps(intent.Pace{Took: 10, Long: 1000})
	here, elsewhere, behind := d.homes[0][:10], d.homes[1][:10], d.homes[0][10:20]
	roomtest.Must(t, d.Announce(slices.Concat(here, elsewhere), 3, 4, true))
	roomtest.Must(t, d.Announce(behind, 20, 21, true)) // far enough from the other to end by itself
	d.act()
	d.advance(4)
	d.act()
	want := func(when string, a, b, c int) {
		t.Helper()
		if x, y, z := d.wanted(here), d.wanted(elsewhere), d.wanted(behind); x != a || y != b || z != c {
			t.Errorf("%s, %d, %d and %d keys are wanted, want %d, %d and %d", when, x, y, z, a, b, c)
		}
	}
	want("after the step", 10, 10, 10)
	d.run()
	d.Crossed(d.clock.Now())
	roomtest.Eventually(t, "the keys that are here are neither wanted nor count as announced", func() bool { return d.wanted(here) == 0 && d.Held() == 20 })
	want("behind a barrier", 0, 10, 10)
	for i := 0; d.wanted(elsewhere) > 0; i++ {
		if i > 10_000 {
			t.Fatal("they stay for ever")
		}
		d.advance(d.clock.Now() + 10)
		time.Sleep(time.Millisecond)
	}
}

// A countedPolicy counts how often it is asked what an intent asks for: each time that a key begins, ends or is asked for again.
type countedPolicy struct {
	placement.Policy
	n atomic.Int64
}

func (c *countedPolicy) OnIntent(hot bool) placement.Ask {
	c.n.Add(1)
	return c.Policy.OnIntent(hot)
}

// Keys that most steps use begin once, with the first step, and end with the last one. Where keys are taken away from nodes that want
// them, each step asks anew.
func TestKeysOfManyStepsBeginOnce(t *testing.T) {
	const steps, each = 30, 10
	for _, p := range []placement.Policy{placement.AdaPM, placement.RelocateAll, placement.NonUniform} {
		c := &countedPolicy{Policy: p}
		d := deskOf(t, c, false)
		ks := d.homes[0][:each] // about which nothing is sent
		for at := range godwit.Clock(steps) {
			d.announce(t, slices.Clone(ks), at, at+1)
		}
		did := func(when string, want int64, wanted int) {
			t.Helper()
			c.n.Store(0)
			d.act()
			if got := c.n.Load(); got != want || d.wanted(ks) != wanted {
				t.Errorf("%s, %s: the rows are told of %d keys, want %d; %d are wanted, want %d", p.Name(), when, got, want, d.wanted(ks), wanted)
			}
		}
		groups := int64(1) // that begin: all of the first window, so many steps together as planners have it
		if p != placement.AdaPM {
			together := int(d.together(d.timer.Window()))
			groups = int64((steps + together - 1) / together)
		}
		did("at the begin", each*groups, each)
		if n := d.Held(); n != each {
			t.Errorf("%s: %d keys are held, want %d", p.Name(), n, each)
		}
		d.advance(steps / 2)
		did("in the midst", 0, each)
		d.advance(steps)
		did("at the end", each, 0)
		if n := d.Held(); n != 0 {
			t.Errorf("%s: %d keys are held at the end", p.Name(), n)
		}
	}
}

// What the planner has looked up counts as work, though nothing begins: a quarter of what a key takes that begins.
func TestKeysThatAreLookedUpAreWork(t *testing.T) {
	d := deskOf(t, placement.AdaPM, false)
	ks := d.homes[0][:100]
	for _, want := range []int{100 + 100/4, 100 / 4} { // begun; held already
		d.announce(t, ks, 0, 5)
		if got := d.part(0, 0); got != want {
			t.Errorf("it takes as much as %d keys that begin, want %d", got, want)
		}
	}
}

// Members of the planner's team act on the intents of one worker each, at the same time.
func TestWorkersIntentsAreActedOnSideBySide(t *testing.T) {
	const workers = 4
	w := roomtest.Yielding{Sized: roomtest.Sized{World: host.Real(), N: 8}}
	cfg := roomtest.Protocol(t, 0, 2, placement.Adaptive, 6, godwit.Table{Name: "t", Rows: keys, Dim: 1})
	h, bell := host.New(w), host.NewBell()
	limits := host.Usual
	limits.Share = 1
	ls := link.New(h, 0, 2, 1, limits, filter.Compress{}, bell)
	ls.Imagine(1, func() {})
	rows, err := shards.New(cfg, 4*keys, store.HeapAlloc, bell)
	roomtest.Must(t, err)
	clocks := tick.NewClocks(0, workers, 0)
	p := New(h, rows, ls, host.NewBudget(workers, 2), clocks, false, nil)
	t.Cleanup(func() { h.Halt(); h.Join() })
	d := &desk{Planner: p}
	for round := range godwit.Clock(50) {
		for i := range workers {
			var own []godwit.Key
			for k := godwit.Key(i); k < keys; k += workers {
				own = append(own, k)
			}
			roomtest.Must(t, p.Of(i).Announce(own, 2*round, 2*round+1, false))
		}
		all := make([]godwit.Key, keys)
		for k := range all {
			all[k] = godwit.Key(k)
		}
		p.act()
		if n := d.wanted(all); n != keys {
			t.Fatalf("%d of %d keys are wanted", n, keys)
		}
		for i, c := range clocks {
			c.Advance()
			p.Of(i).Advanced(c.Advance(), 0)
		}
		p.act()
		for i := range p.members {
			if p.members[i].out.Any() {
				t.Fatal("after a look, something is to be flushed")
			}
		}
		if n := d.wanted(all); n != 0 || p.Held() != 0 {
			t.Fatalf("after their end, %d keys are wanted and %d held", n, p.Held())
		}
	}
	if p.Helped() == 0 {
		t.Error("nobody helped")
	}
}

// Intents of nothing, and those that are over, are none.
func TestIntentsThatAreOverAreNotKept(t *testing.T) {
	d := deskOf(t, placement.Adaptive, false)
	d.advance(5)
	d.announce(t, d.homes[0][:1], 2, 5)
	d.announce(t, d.homes[0][:1], 7, 7)
	d.announce(t, nil, 7, 8)
	if n, spans := d.Announcer.held.keys.Load(), d.take(); n != 0 || len(spans) > 0 {
		t.Errorf("%d keys in %d intents are kept", n, len(spans))
	}
}

// An intent that is far ahead waits until the clock has come near it, unless the planner is
// eager.
func TestAnIntentBeginsWhenItIsDue(t *testing.T) {
	const far = 1000
	for _, eager := range []bool{false, true} {
		d := deskOf(t, placement.Adaptive, eager)
		k := d.homes[1][:1]
		d.announce(t, k, far, far+1)
		d.act()
		if got := d.wanted(k) == 1; got != eager {
			t.Errorf("eager %v: at clock 0 an intent of clock %d has begun: %v", eager, far, got)
		}
		d.run()
		d.advance(far)
		roomtest.Eventually(t, "it has begun", func() bool { return d.wanted(k) == 1 })
	}
}

// An eager planner begins all intents at once, and ends each in its time.
func TestAnEagerPlannerEndsEachIntentInItsTime(t *testing.T) {
	d := deskOf(t, placement.Adaptive, true)
	soon, later := d.homes[0][:1], d.homes[0][1:2]
	d.announce(t, soon, 10, 11)
	d.announce(t, later, 1000, 1001)
	d.act()
	if d.wanted(soon) != 1 || d.wanted(later) != 1 {
		t.Errorf("%d and %d keys are wanted, want both", d.wanted(soon), d.wanted(later))
	}
	d.advance(11)
	d.act()
	if d.wanted(soon) != 0 || d.wanted(later) != 1 {
		t.Errorf("at clock 11, %d and %d keys are wanted, want the second only", d.wanted(soon), d.wanted(later))
	}
}

// An intent that is due when it is announced begins then, though the planner sleeps until a
// clock before its start.
func TestAnIntentThatIsDueBeginsAtOnce(t *testing.T) {
	for _, start := range []godwit.Clock{6, math.MinInt64} {
		d := deskOf(t, placement.Adaptive, false)
		d.run()
		d.announce(t, d.homes[0][:1], 0, 5)
		roomtest.Eventually(t, "the planner sleeps until clock 5", func() bool { return d.next.Load() == 5 })
		k := d.homes[0][1:2]
		d.announce(t, k, start, 7)
		roomtest.Eventually(t, fmt.Sprintf("the intent from clock %d on has begun", start), func() bool { return d.wanted(k) == 1 })
	}
}

// What the planner does is sent, counted, and followed by a pause.
func TestALookOfThePlannerIsCounted(t *testing.T) {
	d := deskOf(t, placement.Adaptive, false)
	w := &countingWorld{World: d.host.World, worked: make(chan int), slept: make(chan time.Duration), over: make(chan struct{})}
	d.host.World = w
	t.Cleanup(func() { close(w.over) })
	d.announce(t, d.homes[1][:3], 0, 5)
	d.run()
	for _, x := range []struct {
		clock godwit.Clock
		work  int
		sent  int32
	}{{0, 3 + 3, 1}, {5, 3, 1}} { // begun and asked for; ended, before anything came
		d.advance(x.clock)
		if got := <-w.worked; got != x.work {
			t.Errorf("a look at clock %d took as long as %d keys, want %d", x.clock, got, x.work)
		}
		if got := <-w.slept; got < host.MinPause {
			t.Errorf("after a look it pauses for %v", got)
		}
		if got := d.flushed.Load(); got != x.sent {
			t.Errorf("at clock %d, something was sent %d times, want %d", x.clock, got, x.sent)
		}
	}
}

// A countingWorld is real, and tells what a planner does in it.
type countingWorld struct {
	host.World
	worked chan int
	slept  chan time.Duration
	over   chan struct{} // closed when nobody listens any more
}

func (w *countingWorld) Worked(_ host.Duty, keys int) {
	select {
	case w.worked <- keys:
	case <-w.over:
	}
}

func (w *countingWorld) Sleep(d time.Duration, a, b <-chan struct{}) int {
	select {
	case w.slept <- d:
	case <-w.over:
	}
	return w.World.Sleep(d, a, b)
}

// An intent is begun in time although it was announced while the planner was at
// work, which then sleeps until it has to do something for the worker.
func TestAnIntentThatIsAnnouncedWhileThePlannerIsAtWorkIsNotForgotten(t *testing.T) {
	policy := &hooked{Policy: placement.Adaptive}
	d := deskOf(t, policy, false)
	d.run()
	one, other := d.homes[0][:1], d.homes[0][1:2]
	d.announce(t, one, 0, 5)
	roomtest.Eventually(t, "the planner sleeps until clock 5", func() bool { return d.next.Load() == 5 })
	reached, goOn := policy.inPass()
	d.advance(5)
	<-reached
	start := godwit.Clock(6 + d.Window()) // not soon enough to wake the planner, which is to look at clock 5
	err := d.Announce(other, start, godwit.Forever, false)
	goOn()
	roomtest.Must(t, err)
	roomtest.Eventually(t, "the first intent has ended", func() bool { return d.wanted(one) == 0 })
	d.advance(start)
	roomtest.Eventually(t, "the other has begun", func() bool { return d.wanted(other) == 1 })
}

// An intent ends although its worker passed the end while the planner was about to
// begin it.
func TestAnIntentWhoseEndPassesWhileItBeginsEnds(t *testing.T) {
	policy := &hooked{Policy: placement.Adaptive}
	d := deskOf(t, policy, false)
	d.run()
	k := d.homes[0][:1]
	reached, goOn := policy.inPass()
	d.announce(t, k, 0, 5)
	<-reached
	d.advance(5)
	goOn()
	roomtest.Eventually(t, "the intent has ended", func() bool { return d.wanted(k) == 0 })
}

func TestTooManyIntentsAreRefused(t *testing.T) {
	d := deskOf(t, placement.Adaptive, false)
	d.run()
	there := d.homes[1][:100]
	d.announce(t, there, 1000, 1001)
	roomtest.Eventually(t, "the planner has filed the intent", func() bool { return d.next.Load() < int64(godwit.Forever) })
	if got := d.Announcer.held.keys.Load(); got != int64(len(there)) {
		t.Errorf("%d keys are counted as announced, want %d", got, len(there))
	}
	d.Announcer.held.keys.Add(maxHeld - 2*int64(len(there))) // their memory is not what is tested
	d.announce(t, there, 1000, 1001)
	if err := d.Announce(there[:1], 1000, 1001, false); !errors.Is(err, godwit.ErrFull) {
		t.Errorf("got %v, want %v", err, godwit.ErrFull)
	} else if says := "134217728 keys are announced already, and 0 intents, which count 8 each and 0 for the table of their keys, have begun and not ended; 1 keys more exceed 134217728"; !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want it to say %q", err, says)
	}
	d.Announcer.held.keys.Add(-maxHeld + 2*int64(len(there)))
	d.Announcer.held.groups.Store(maxHeld / groupKeys)
	if err := d.Announce(there[:1], 1000, 1001, false); !errors.Is(err, godwit.ErrFull) {
		t.Errorf("with as many intents as there may be, got %v, want %v", err, godwit.ErrFull)
	}
	d.Announcer.held.groups.Store(0)
	d.Announcer.held.slots.Store(maxHeld / slotKeys)
	if err := d.Announce(there[:1], 1000, 1001, false); !errors.Is(err, godwit.ErrFull) {
		t.Errorf("with as many keys of intents that have begun as there may be, got %v, want %v", err, godwit.ErrFull)
	}
	d.Announcer.held.slots.Store(0)
	d.advance(1001)
	roomtest.Eventually(t, "ended intents are not counted", func() bool { return d.Announcer.held.keys.Load() == 0 })
}

// A program that announces the same keys again and again for a long time has them counted once, and each of the intents that have begun.
func TestIntentsThatHaveBegunAreCounted(t *testing.T) {
	d := deskOf(t, placement.Adaptive, false)
	there := d.homes[1][:100]
	for i := range godwit.Clock(50) {
		d.advance(i)
		d.announce(t, slices.Clone(there), i, i+1000)
		d.act()
	}
	if held, begun := d.Announcer.held.keys.Load(), d.Announcer.held.groups.Load(); held != int64(len(there)) || begun != 50 {
		t.Errorf("%d keys are counted, and %d intents that have begun, want %d and 50", held, begun, len(there))
	}
	if slots := d.Announcer.held.slots.Load(); slots < 2*int64(len(there)) {
		t.Errorf("%d places for %d keys of intents that have begun are counted, want at least twice as many", slots, len(there))
	}
	d.advance(2000)
	d.act()
	if held, begun := d.Announcer.held.keys.Load(), d.Announcer.held.groups.Load(); held != 0 || begun != 0 {
		t.Errorf("%d keys and %d intents are counted after their end", held, begun)
	}
}

// Steps that the worker is to fetch count until it takes them: one whose clock never advances takes none.
func TestStepsThatAreNotTakenAreCounted(t *testing.T) {
	d := deskOf(t, placement.Adaptive, false)
	d.Steps(intent.Pace{Took: 2, Long: 1, Fetched: true})
	for range 30 {
		roomtest.Must(t, d.Announce(d.homes[1][:10], 1, 2, true))
		d.act()
	}
	if held := d.Announcer.held.keys.Load(); held != 300 {
		t.Errorf("%d keys are counted, want 300", held)
	}
	if steps := len(d.TakeDue()); steps != 30 || d.Announcer.held.keys.Load() != 0 {
		t.Errorf("%d steps are to be fetched, want 30; %d keys are counted then, want 0", steps, d.Announcer.held.keys.Load())
	}
}

// The window grows when keys take long to come, and when they are missed although they were
// announced in time; not when they were announced too late.
func TestTheWindowFollowsWhatKeysTake(t *testing.T) {
	const start = 100
	window := func(do func(d *desk)) int64 {
		d := deskOf(t, placement.Adaptive, false)
		w := &steppedWorld{World: d.host.World}
		d.host.World = w
		for i := range godwit.Clock(start) { // a clock each millisecond
			d.advance(i)
			w.now += int64(time.Millisecond)
			d.act()
		}
		do(d)
		d.advance(start)
		w.now += int64(time.Millisecond)
		d.act()
		if tick := d.tick(); math.Abs(tick-1e-3) > 1e-6 {
			t.Errorf("the worker's clock ticks each %v s, want each millisecond", tick)
		}
		window := d.Window()
		for i := range godwit.Clock(start) { // without a mistake
			d.advance(start + i + 1)
			w.now += int64(time.Millisecond)
			d.act()
		}
		if after := d.Window(); after > window {
			t.Errorf("without a mistake, the window grows from %d to %d clocks", window, after)
		}
		return window
	}
	usual := window(func(*desk) {})
	slow := window(func(d *desk) { d.Leads(uint64(50*time.Millisecond)*3, 3) })
	missed := window(func(d *desk) { d.Missed(start) })
	excused := window(func(d *desk) {
		d.announce(t, d.homes[1][:1], start, start+10)
		d.act()
		d.Missed(start + 1)
		if d.Late() != 1 {
			t.Errorf("%d accesses found their key on its way, want 1", d.Late())
		}
	})
	overdue := window(func(d *desk) { // an intent that goes on for long does not excuse what is missed when its keys should be here
		d.announce(t, d.homes[1][:1], start, godwit.Forever)
		d.act()
		d.Missed(start + 20)
	})
	if slow < usual+20 || slow > usual+70 || missed <= usual || excused != usual || overdue <= usual {
		t.Errorf("the window is %d clocks; %d when keys take 50; %d when one is missed, %d when it was announced too late, and %d when that was long ago", usual, slow, missed, excused, overdue)
	}
}

// A worker's waits hardly make its steps long: the window is for how fast it goes where it does not wait. But a worker that only waits has no
// window without end.
func TestTheWindowDoesNotFollowWhatTheWorkerWaits(t *testing.T) {
	window := func(waits time.Duration) int64 {
		d := deskOf(t, placement.Adaptive, false)
		w := &steppedWorld{World: d.host.World}
		d.host.World = w
		for i := range godwit.Clock(300) { // a step takes a millisecond, and what it waits
			d.Leads(uint64(20*time.Millisecond), 1)
			w.now += int64(time.Millisecond + waits)
			d.pace.waited.Add(int64(waits))
			d.advance(i)
			d.act()
		}
		return d.Window()
	}
	none, some, much := window(0), window(4*time.Millisecond), window(time.Second)
	if none < 20 || some < none*5/8 || some > none || much > none/4 {
		t.Errorf("keys take 20 ms, and steps 1 ms: the window is %d clocks, %d where the worker waits 4 ms a step, and %d where it waits a second", none, some, much)
	}
}

// A steppedWorld is real, other than that time passes when the test says so.
type steppedWorld struct {
	host.World
	now int64
}

func (w *steppedWorld) Now() int64 { return w.now + 1 }

// A worker that announces for later clocks and never advances is told, once.
func TestAWorkerThatForgetsToAdvanceIsTold(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	for name, x := range map[string]struct {
		start   func(step int) godwit.Clock
		calls   func(step int) uint64
		advance bool
		told    int
	}{
		"forgets, and counts steps itself": {start: next, calls: each, told: 1},
		"forgets, and asks for the clock":  {start: func(int) godwit.Clock { return 1 }, calls: each, told: 1},
		"advances":                         {start: next, calls: each, advance: true},
		"announces all before":             {start: next, calls: func(int) uint64 { return 0 }},
		"announces what it does now":       {start: func(int) godwit.Clock { return 0 }, calls: each},
	} {
		log.Reset()
		d := deskOf(t, placement.Adaptive, false)
		for i := range 3 * idleTurns {
			d.Announcing(1, x.start(i), x.start(i)+1, x.calls(i))
			if x.advance {
				d.advance(godwit.Clock(i + 1))
			}
		}
		if got := strings.Count(log.String(), "level=WARN"); got != x.told || x.told > 0 && !strings.Contains(log.String(), "worker 0.0") {
			t.Errorf("%s: told %d times, want %d: %s", name, got, x.told, log.String())
		}
	}
}

func next(step int) godwit.Clock { return godwit.Clock(step + 1) }
func each(step int) uint64       { return uint64(step + 1) }

// An intent for a key that is here begins and ends as one for a key that is elsewhere: else another node might get
// the key before its use.
func TestAKeyThatIsHereIsHeldForItsUse(t *testing.T) {
	d := deskOf(t, placement.Adaptive, true)
	here, there := d.homes[0][:10], d.homes[1][:10]
	for _, keys := range [][]godwit.Key{here, there} {
		roomtest.Must(t, d.Announce(slices.Clone(keys), 5, 6, true))
		d.act()
	}
	if h, a := d.wanted(here), d.wanted(there); h != len(here) || a != len(there) || d.Held() != int64(len(here)+len(there)) {
		t.Errorf("of 10 keys each, %d that are here are wanted and %d that are not; %d are held", h, a, d.Held())
	}
	d.advance(6 + d.timer.Stay())
	d.act()
	for i := 0; i < 1_000_000 && d.Held() > 0; i++ { // the worker is fast now, and its window wider
		d.advance(d.clock.Now() + 10)
		d.act()
	}
	if h, a := d.wanted(here), d.wanted(there); h+a != 0 || d.Held() != 0 {
		t.Errorf("behind their step, %d and %d keys are wanted, and %d held", h, a, d.Held())
	}
}

// BenchmarkHeld is what a step of 256 keys takes of which each begins and ends, and one whose keys other steps hold.
func BenchmarkHeld(b *testing.B) {
	const each, ahead = 256, 60
	for name, pool := range map[string]int{"keys=held": each * 8, "keys=new": each * ahead * 2} {
		b.Run(name, func(b *testing.B) {
			cfg := roomtest.Protocol(b, 0, 2, placement.AdaPM, 8, godwit.Table{Name: "t", Rows: 1 << 17, Dim: 1})
			h, bell := host.New(roomtest.Sized{World: host.Real(), N: 1}), host.NewBell()
			ls := link.New(h, 0, 2, 1, host.Usual, filter.Compress{}, bell)
			ls.Imagine(1, func() {})
			rows, err := shards.New(cfg, 4e6, store.HeapAlloc, bell)
			roomtest.Must(b, err)
			clocks := tick.NewClocks(0, 1, 0)
			p := New(h, rows, ls, host.NewBudget(1, 2), clocks, false, nil)
			var own []godwit.Key
			for k := godwit.Key(0); len(own) < pool; k++ {
				if cfg.Homes.Home(k) == 0 {
					rows.With(k, func(x *protocol.Shard) { x.Make([]godwit.Key{k}, make([]*store.Header, 1)) })
					own = append(own, k)
				}
			}
			rng := rand.New(rand.NewPCG(1, 2))
			rng.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
			steps, told := 0, godwit.Clock(0)
			for b.Loop() {
				b.StopTimer()
				for ; told < clocks[0].Now()+ahead; told++ {
					roomtest.Must(b, p.Of(0).Announce(own[steps*each%pool:][:each], told, told+1, false))
					steps++
				}
				b.StartTimer()
				p.act()
				b.StopTimer()
				for range 8 {
					p.Of(0).Advanced(clocks[0].Advance(), 0)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(8*each), "ns/key")
			h.Halt()
			h.Join()
		})
	}
}

// BenchmarkLook is what it takes to begin and to end the intents of four workers for 20,000 keys each, by one goroutine, and by as many as there are
// processors.
func BenchmarkLook(b *testing.B) {
	const workers, each = 4, 20_000
	for _, n := range []int{1, runtime.GOMAXPROCS(0)} {
		b.Run(fmt.Sprintf("processors=%d", n), func(b *testing.B) {
			cfg := roomtest.Protocol(b, 0, 4, placement.Adaptive, 8, godwit.Table{Name: "t", Rows: 500_000, Dim: 1})
			h, bell := host.New(roomtest.Sized{World: host.Real(), N: n}), host.NewBell()
			limits := host.Usual
			limits.Rows = 1 << 40
			ls := link.New(h, 0, 4, 1, limits, filter.Compress{}, bell)
			for i := 1; i < 4; i++ {
				ls.Imagine(godwit.NodeID(i), func() {})
			}
			rows, err := shards.New(cfg, 4e6, store.HeapAlloc, bell)
			roomtest.Must(b, err)
			clocks := tick.NewClocks(0, workers, 0)
			p := New(h, rows, ls, host.NewBudget(workers, 4), clocks, false, nil)
			rng := rand.New(rand.NewPCG(1, 2))
			buf := make([]byte, 1<<20)
			clock := godwit.Clock(0)
			own := make([]godwit.Key, each)
			for b.Loop() {
				b.StopTimer()
				for i := 1; i < 4; i++ {
					for len(ls.To(godwit.NodeID(i)).Take(buf)) > 0 {
					}
				}
				for i := range workers {
					for k := range own {
						own[k] = godwit.Key(rng.Uint64N(500_000))
					}
					roomtest.Must(b, p.Of(i).Announce(own, clock, clock+1, false))
				}
				b.StartTimer()
				p.act()
				clock++
				for i, c := range clocks {
					p.Of(i).Advanced(c.Advance(), 0)
				}
				p.act()
			}
			b.ReportMetric(float64(p.Helped())/float64(b.N), "helped/op")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(workers*each), "ns/key")
			h.Halt()
			h.Join()
		})
	}
}
