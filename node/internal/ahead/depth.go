package ahead

// A depth learns for how many steps ahead values have to be fetched: one, unless a step takes
// less time than the values take to come. Values that are late now and then are waited for: to
// fetch them earlier would make all others older.
type depth struct {
	late, early int // steps in a row whose values had not come when they were used, or had
}

const (
	lateSteps  = 16      // so many late steps in a row ask for one step more,
	earlySteps = 256     // … and so many early ones try one step less
	maxDepth   = 1 << 10 // a bound of memory, far above what a network takes
)

// Used takes note that the worker came to use the values of a step, which were late, or had
// come.
func (b *Buffer) Used(s *Step, late bool) {
	if s.used {
		return
	}
	s.used = true
	d := &b.depth
	if late {
		d.late, d.early = d.late+1, 0
	} else {
		d.late, d.early = 0, d.early+1
	}
	switch {
	case d.late >= lateSteps && b.Depth < maxDepth:
		b.Depth++
		d.late = 0
	case d.early >= earlySteps && b.Depth > 0:
		b.Depth--
		d.early = 0
	}
}
