package node

import (
	"fmt"

	"github.com/godwit-ps/godwit"
)

// A tick is a worker's time as bounds count it: the era, which is how many
// barriers the worker went to, and the clocks since the last of them. A worker
// that waits in a barrier is in the next era already, before all clocks of
// which it makes no update: it holds nobody up who still has to come, and
// whatever it pushes afterwards is of the new era.
//
// The bits above clockEnd are the era, those below the clock, and the lowest is
// always set: no tick is 0, which stands for none. Eras are counted modulo 2²⁴, so
// ticks have an order only if they are less than 2²³ barriers apart. Those of
// workers are at most two apart, as all workers meet at each barrier; what is kept
// for longer follows (see oldest).
type tick uint64

const (
	clockEnd  = 40                         // above the bits of the clock
	clockUnit = tick(1) << 1               // one clock
	eraUnit   = tick(1) << clockEnd        // one barrier
	maxClock  = 1<<(clockEnd-1) - 1        // of an era
	apart     = eraUnit << (63 - clockEnd) // ticks that are so far apart have no order
)

// tickOf returns the first tick of the era after so many barriers.
func tickOf(barriers uint64) tick { return tick(barriers)<<clockEnd | 1 }

// before reports whether t is earlier than u.
func (t tick) before(u tick) bool { return int64(t-u) < 0 }

func minTick(t, u tick) tick {
	if u.before(t) {
		return u
	}
	return t
}

func maxTick(t, u tick) tick {
	if t.before(u) {
		return u
	}
	return t
}

// oldest returns the tick that stands for all that are so far before t that
// nothing depends on them: half as far as ticks may be apart.
func (t tick) oldest() tick { return t - apart/2 }

func (t tick) clock() godwit.Clock { return godwit.Clock(t % eraUnit / clockUnit) }

// era returns the first tick of t's era.
func (t tick) era() tick { return t - t%eraUnit + 1 }

// at returns the tick of a clock of t's era.
func (t tick) at(c godwit.Clock) tick {
	return t.era() + clockUnit*tick(min(max(c, 0), maxClock))
}

// back returns the tick of some clocks before, of the same era.
func (t tick) back(clocks int64) tick {
	if int64(t.clock()) <= clocks {
		return t.era()
	}
	return t - clockUnit*tick(clocks)
}

func (t tick) String() string {
	if e := t >> clockEnd; e > 0 {
		return fmt.Sprintf("clock %d after barrier %d", t.clock(), uint64(e))
	}
	return fmt.Sprintf("clock %d", t.clock())
}

// pending counts what is under way by a time that only grows as things are
// added: a clock, or a tick. It is short: operations of a few clocks.
type pending []underWay

type underWay struct {
	at  uint64
	n   int
	key godwit.Key // of one of them
}

// add notes one more thing of a time.
func (p *pending) add(at uint64, k godwit.Key) {
	q := *p
	i := len(q)
	for i > 0 && tick(at).before(tick(q[i-1].at)) {
		i--
	}
	if i > 0 && q[i-1].at == at {
		q[i-1].n++
		return
	}
	q = append(q, underWay{})
	copy(q[i+1:], q[i:])
	q[i] = underWay{at, 1, k}
	*p = q
}

// remove ends one thing of a time that was added.
func (p *pending) remove(at uint64) {
	q := *p
	for i := range q {
		if q[i].at == at {
			if q[i].n--; q[i].n == 0 {
				*p = append(q[:i], q[i+1:]...)
			}
			return
		}
	}
}

// first returns what is oldest.
func (p pending) first() (u underWay, ok bool) {
	if len(p) == 0 {
		return u, false
	}
	return p[0], true
}
