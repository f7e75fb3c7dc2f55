package ahead

import (
	"math"
	"time"

	"github.com/godwit-ps/godwit/internal/protocol/intent"
)

// LongStep is from which length of its steps on, by what they compute, a worker fetches ahead. It is several times what a value takes to
// come, and the sync rounds to pause: copies that wait for a longer step would be exchanged several
// times without being used, and one that is used in each of several shorter steps serves them all.
// A worker whose steps get shorter goes on fetching until they take half as long.
const LongStep = 1 * time.Millisecond

// Never is a LongStep that no step takes.
const Never = math.MaxInt64

// A pace is how long the steps of a worker take it, without some of their time. Of several steps the
// shortest counts: others lost their processor for some time.
type pace struct {
	began  int64 // when the step began; 0: there was none
	spent  int64 // of what does not count, by then
	least  int64 // nanoseconds of the shortest of the last steps,
	steps  int   // … so many
	length int64 // of the shortest of those before; 0: there were none
}

// paceSteps is over how many steps a worker looks, after the first one.
const paceSteps = 8

// stepped takes note that a step ends, at a time by which so much was spent that does not count. It reports whether there is a new length.
func (p *pace) stepped(now, spent int64) bool {
	first := p.began == 0
	took := now - p.began - (spent - p.spent)
	p.began, p.spent = now, spent
	if first {
		p.least, p.steps = math.MaxInt64, paceSteps-1 // the next one decides
		return false
	}
	p.least = min(p.least, took)
	if p.steps++; p.steps < paceSteps {
		return false
	}
	p.length, p.least, p.steps = max(p.least, 1), math.MaxInt64, 0
	return true
}

// paceOf returns the pace of a worker whose shortest step took so long; 0: it was not measured.
func paceOf(took, long int64, fetches bool) intent.Pace {
	if long == Never {
		long = 0
	}
	return intent.Pace{Took: min(took, intent.MostPace), Long: min(long, intent.MostPace), Fetched: fetches}
}

// A verdict is whether a worker's steps are long.
type verdict struct {
	long  bool  // they are
	dear  int64 // what steps computed whose values were dear to fetch, in nanoseconds; 0: none were
	looks int   // at how many lengths in a row values were dear
}

// dearLooks is at how many lengths of steps in a row values have to be dear. A single length may be of steps that other processes disturbed.
const dearLooks = 3

// judge comes to a verdict by the nanoseconds of a worker's shortest step, and what it computed in one, by how its steps use keys, and from which
// length on steps are long usually. It returns what the verdict is of.
func (v *verdict) judge(took, computed int64, r *returns, usual int64) intent.Pace {
	if v.long && dear(took, computed) {
		v.looks++
	} else {
		v.looks = 0
	}
	if v.looks >= dearLooks {
		v.dear = computed
	}
	p := paceOf(computed, r.long(usual, v.dear), v.long)
	v.long = p.Fetches()
	return p
}

// dear reports whether getting values from elsewhere takes a worker a quarter of what it computes in a step, or more. Its peers have work with it, too,
// which is not in this.
func dear(took, computed int64) bool { return 4*(took-computed) >= computed }
