package tick

import (
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/godwit-ps/godwit"
)

// Each of a worker's calls moves its time as far as it should, whatever the number
// of barriers before.
func TestAClockGoesOnWithItsWorker(t *testing.T) {
	for _, barriers := range []uint64{0, 7, 1<<24 - 1} {
		c := NewClocks(2, 1, barriers)[0]
		at := func(what string, clock godwit.Clock, tick Tick) {
			t.Helper()
			if c.Now() != clock || c.Tick() != tick {
				t.Errorf("%d barriers, %s: the worker is at clock %d, %v, want clock %d, %v", barriers, what, c.Now(), c.Tick(), clock, tick)
			}
		}
		moves := func(what string, from, before Tick, on, want bool) {
			t.Helper()
			if from != before || on != want {
				t.Errorf("%d barriers, %s: went on from %v: %v, want from %v: %v", barriers, what, from, on, before, want)
			}
		}
		first, next := First(barriers), First(barriers+1)
		at("at the start", 0, first)
		if n := c.Advance(); n != 1 {
			t.Errorf("the clock after the first is %d", n)
		}
		at("after a clock without a tick", 1, first)
		from, on := c.Follow()
		moves("Follow", from, first, on, true)
		at("after a clock", 1, first.At(1))
		if x := c.TickAt(5); x != first.At(5) {
			t.Errorf("clock 5 is %v", x)
		}

		from, on = c.Enter()
		moves("Enter", from, first.At(1), on, true)
		at("when it entered a barrier", 1, next)
		from, on = c.Enter()
		moves("Enter again", from, next, on, false)
		c.Advance()
		from, on = c.Follow()
		moves("Follow before the barrier", from, next, on, false)
		at("between Finish and the barrier", 2, next)

		c.Crossed()
		c.Advance()
		from, on = c.Follow()
		moves("Follow after the barrier", from, next, on, true)
		at("one clock after the barrier", 3, next.At(1))
		if x := c.TickAt(4); x != next.At(2) {
			t.Errorf("clock 4 is %v, want the second of the era", x)
		}
		c.Leave()
		at("when its node leaves", 3, First(barriers+3))
	}
}

func TestTheSlowestWorkerIsFound(t *testing.T) {
	cs := NewClocks(0, 3, 0)
	for i, clocks := range []int{2, 1, 3} {
		for range clocks {
			cs[i].Advance()
			cs[i].Follow()
		}
	}
	if least, slowest := cs.Least(); least != First(0).At(1) || slowest != 1 {
		t.Errorf("worker %d is the slowest, at %v", slowest, least)
	}
	cs[1].Enter()
	if least, slowest := cs.Least(); least != First(0).At(2) || slowest != 0 {
		t.Errorf("worker %d is the slowest, at %v, when another one is in a barrier", slowest, least)
	}
}

// The clocks of an era are bounded, and whoever comes to their end hears how.
func TestTheLastClockOfAnEraHasNoNext(t *testing.T) {
	c := NewClocks(4, 2, 0)[1]
	c.tick.Store(uint64(First(0).At(godwit.Forever)))
	defer func() {
		if x, _ := recover().(string); !strings.Contains(x, "worker 4.1") || !strings.Contains(x, "without a Barrier") {
			t.Errorf("beyond the last clock: %q", x)
		}
	}()
	c.Follow()
}

// Workers write their clocks, so no two of these may share a cache line.
func TestAClockFillsACacheLine(t *testing.T) {
	if n := unsafe.Sizeof(Clock{}); n != 64 {
		t.Errorf("a clock takes %d bytes, want 64", n)
	}
}

// The clocks of an era count from the worker's clock at which it entered the barrier.
func TestAnEraBeginsAtTheClockOfItsBarrier(t *testing.T) {
	c := NewClocks(0, 1, 0)[0]
	for range 3 {
		c.Advance()
		c.Follow()
	}
	c.Enter()
	c.Crossed()
	if x := c.TickAt(4); x != First(1).At(1) {
		t.Errorf("after a barrier at clock 3, clock 4 is %v", x)
	}
	for _, before := range []godwit.Clock{2, -1, math.MinInt64} {
		if x := c.TickAt(before); x != First(1) {
			t.Errorf("after a barrier at clock 3, clock %d is %v, want the first of the era", before, x)
		}
	}
}
