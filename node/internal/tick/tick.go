package tick

import (
	"fmt"

	"github.com/godwit-ps/godwit"
)

// A Tick is a worker's time as bounds count it: the era, which is how many
// barriers the worker went to, and the clocks since the last of them. A worker
// that waits in a barrier is in the next era already, before all clocks of
// which it makes no update: it holds nobody up who still has to come, and
// whatever it pushes afterwards is of the new era.
//
// The bits above clockEnd are the era, those below the clock, and the lowest is
// always set: no tick is 0, which stands for none. Eras are counted modulo 2²⁴, so
// ticks have an order only if they are less than 2²³ barriers apart. Those of
// workers are at most two apart, as all workers meet at each barrier; what is kept
// for longer follows (see [Tick.Oldest]).
type Tick uint64

const (
	clockEnd  = 40                         // above the bits of the clock
	clockUnit = Tick(1) << 1               // one clock
	eraUnit   = Tick(1) << clockEnd        // one barrier
	maxClock  = 1<<(clockEnd-1) - 1        // of an era
	apart     = eraUnit << (63 - clockEnd) // ticks that are so far apart have no order
)

// First returns the first tick of the era after so many barriers.
func First(barriers uint64) Tick { return Tick(barriers)<<clockEnd | 1 }

// Before reports whether t is earlier than u.
func (t Tick) Before(u Tick) bool { return int64(t-u) < 0 }

// Min returns the earlier of two ticks.
func Min(t, u Tick) Tick {
	if u.Before(t) {
		return u
	}
	return t
}

// Max returns the later of two ticks.
func Max(t, u Tick) Tick {
	if t.Before(u) {
		return u
	}
	return t
}

// Oldest returns the tick that stands for all that are so far before t that
// nothing depends on them: half as far as ticks may be apart.
func (t Tick) Oldest() Tick { return t - apart/2 }

// Clock returns how many clocks of its era are before t.
func (t Tick) Clock() godwit.Clock { return godwit.Clock(t % eraUnit / clockUnit) }

// Era returns the first tick of t's era.
func (t Tick) Era() Tick { return t - t%eraUnit + 1 }

// Near reports whether workers of one run may be at t and u at the same time, or soon.
func (t Tick) Near(u Tick) bool {
	const eras = 4
	d := int64(t.Era() - u.Era())
	return -eras*int64(eraUnit) <= d && d <= eras*int64(eraUnit)
}

// At returns the tick of a clock of t's era. Clocks below 0 count as 0, those
// beyond the last one of an era as that.
func (t Tick) At(c godwit.Clock) Tick {
	return t.Era() + clockUnit*Tick(min(max(c, 0), maxClock))
}

// Back returns the tick of some clocks before, of the same era.
func (t Tick) Back(clocks int64) Tick {
	if int64(t.Clock()) <= clocks {
		return t.Era()
	}
	return t - clockUnit*Tick(clocks)
}

// String returns the clock and, unless it is 0, the number of barriers before it.
func (t Tick) String() string {
	if e := t >> clockEnd; e > 0 {
		return fmt.Sprintf("clock %d after barrier %d", t.Clock(), uint64(e))
	}
	return fmt.Sprintf("clock %d", t.Clock())
}
