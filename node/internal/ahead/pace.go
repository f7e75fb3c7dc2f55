package ahead

import (
	"math"
	"time"

	"github.com/godwit-ps/godwit/internal/protocol/intent"
)

// LongStep is from which length of its steps on a worker fetches ahead. It is several times what a value takes to
// come, and the sync rounds to pause: copies that wait for a longer step would be exchanged several
// times without being used, and one that is used in each of several shorter steps serves them all.
// A worker whose steps get shorter goes on fetching until they take half as long.
const LongStep = 1 * time.Millisecond

// Never is a LongStep that no step takes.
const Never = math.MaxInt64

// A pace is how long the steps of a worker take it, without what it waits. Of several steps the
// shortest counts: others lost their processor for some time.
type pace struct {
	began  int64 // when the step began; 0: there was none
	waited int64 // what the worker had waited by then
	least  int64 // nanoseconds of the shortest of the last steps,
	steps  int   // … so many
	length int64 // of the shortest of those before, by which they were judged; 0: there were none
}

// paceSteps is over how many steps a worker looks, after the first one.
const paceSteps = 8

// stepped takes note that a step ends, at a time. It returns the pace by which the worker goes on to fetch or not, if it has
// seen enough steps.
func (p *pace) stepped(now, waited, long int64, fetches bool) (is intent.Pace, ok bool) {
	first := p.began == 0
	took := now - p.began - (waited - p.waited)
	p.began, p.waited = now, waited
	if first {
		p.least, p.steps = math.MaxInt64, paceSteps-1 // the next one decides
		return is, false
	}
	p.least = min(p.least, took)
	if p.steps++; p.steps < paceSteps {
		return is, false
	}
	is = paceOf(max(p.least, 1), long, fetches)
	p.length, p.least, p.steps = p.least, math.MaxInt64, 0
	return is, true
}

// paceOf returns the pace of a worker whose shortest step took so long; 0: it was not measured.
func paceOf(took, long int64, fetches bool) intent.Pace {
	if long == Never {
		long = 0
	}
	return intent.Pace{Took: min(took, intent.MostPace), Long: min(long, intent.MostPace), Fetched: fetches}
}
