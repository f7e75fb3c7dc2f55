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
type tick uint64

// clockBits are the low bits of a tick, its clock.
const clockBits = 40

// never is after all ticks of workers that still do something.
const never = tick(1) << 63

func (t tick) clock() godwit.Clock { return godwit.Clock(t & (1<<clockBits - 1)) }

// era returns the first tick of t's era.
func (t tick) era() tick { return t &^ (1<<clockBits - 1) }

// back returns the tick of some clocks before, of the same era.
func (t tick) back(clocks int64) tick {
	if int64(t.clock()) <= clocks {
		return t.era()
	}
	return t - tick(clocks)
}

func (t tick) String() string {
	if e := t >> clockBits; e > 0 {
		return fmt.Sprintf("clock %d after barrier %d", t.clock(), e)
	}
	return fmt.Sprintf("clock %d", t.clock())
}

// pending counts what is under way by a time that only grows as things are
// added. It is short: operations of a few clocks.
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
	for i > 0 && q[i-1].at > at {
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
