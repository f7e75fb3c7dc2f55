package ahead

import (
	"math"

	"github.com/godwit-ps/godwit"
)

// A depth learns for how many steps ahead values have to be fetched: one, unless a step takes
// less time than the values take to come. Values that are late now and then are waited for: to
// fetch them earlier would make all others older.
type depth struct {
	late, early int   // steps in a row whose values had not come when they were used, or had
	trip        int64 // nanoseconds that the values of the late ones took to come, at the least
	waits       int   // steps in a row in which the worker waited for long
}

const (
	lateSteps  = 16  // after so many late steps in a row it is seen whether values take longer than a step,
	earlySteps = 256 // … and so many early ones try one step less
	maxDepth   = 63  // a bound of age and memory
	longWait   = 4   // a wait is long if it takes so great a part of a step, or more
)

// Came takes note that the worker came to use the values of the step, and whether it waited for them until now.
func (s *Step) Came(late bool, now int64) { s.late, s.took = late, max(1, now-s.asked) }

// Stepped takes note that the worker's step is over. Steps take it so many nanoseconds without what it waits; 0: that is
// not known. In this one it waited for values for so long.
func (b *Buffer) Stepped(length, waited int64) {
	used, late, trip := false, false, int64(0)
	for _, s := range b.steps {
		if s.took == 0 || b.Own && s.now {
			continue // the few that could not be fetched before say nothing of the others
		}
		used = true
		if s.late {
			late, trip = true, max(trip, s.took)
		}
	}
	if used {
		b.Own, b.Depth = b.depth.after(late, trip, length, b.Own, b.Depth)
		b.Own = b.depth.waited(waited, length, b.Own)
	}
}

// waited returns whether a worker is to fetch also what the steps before use, after a step in which it waited for values for so
// long: it does if that took a good part of each of several steps in a row. Else it would wait in all of
// them for what it uses in each.
func (d *depth) waited(took, length int64, own bool) bool {
	if own || length <= 0 || took < length/longWait {
		d.waits = 0
		return own
	}
	if d.waits++; d.waits < lateSteps {
		return false
	}
	d.waits = 0
	return true
}

// after returns what a worker is to fetch after a step whose values were late, and took so long to come, or were not: also
// what the steps before use, and for how many steps ahead, less one.
func (d *depth) after(late bool, trip, length int64, own bool, depth godwit.Clock) (bool, godwit.Clock) {
	if !late {
		d.late = 0
		if d.early++; d.early < earlySteps {
			return own, depth
		}
		d.early = 0
		return own && depth > 0, max(0, depth-1)
	}
	if d.early = 0; d.late == 0 {
		d.trip = math.MaxInt64
	}
	d.trip = min(d.trip, trip)
	if d.late++; d.late < lateSteps {
		return own, depth
	}
	d.late = 0
	if length <= 0 || d.trip <= length {
		return own, depth // they fit into a step
	}
	fits := godwit.Clock((d.trip - 1) / length)
	if own {
		fits = max(fits, depth+1)
	}
	return true, min(fits, maxDepth)
}
