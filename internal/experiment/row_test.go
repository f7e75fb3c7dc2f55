package experiment

import (
	"testing"
	"time"
)

func curve(quality ...float64) *Row {
	r := &Row{Epoch: time.Second}
	for i, q := range quality {
		r.Curve = append(r.Curve, Point{Seconds: float64(i + 1), Quality: q})
	}
	return r
}

func TestTheTargetIsNineTenthsOfTheBestOfOneNode(t *testing.T) {
	if got := target(curve(0.1, 0.5, 0.4), false); got != 0.45 {
		t.Errorf("of the best 0.5: %v", got)
	}
	if got := target(curve(3, 0.9, 1), true); got != 1 {
		t.Errorf("of the least error 0.9: %v", got)
	}
}

func TestTheTimeToTheTargetLiesBetweenTwoEpochs(t *testing.T) {
	for _, c := range []struct {
		row   *Row
		goal  float64
		lower bool
		want  time.Duration
	}{
		{curve(0.1, 0.3, 0.5), 0.4, false, 2500 * time.Millisecond},
		{curve(0.1, 0.3, 0.5), 0.3, false, 2 * time.Second},
		{curve(0.6, 0.1), 0.5, false, time.Second}, // what was before the first epoch is not known
		{curve(0.1, 0.3), 0.4, false, 0},
		{curve(3, 1, 0.5), 2, true, 1500 * time.Millisecond},
		{curve(3, 1, 0.5), 0.4, true, 0},
	} {
		if c.row.reach(c.goal, c.lower); c.row.ToTarget != c.want {
			t.Errorf("%v reaches %v after %v, want %v", c.row.Curve, c.goal, c.row.ToTarget, c.want)
		}
	}
}

func TestARunIsComparedWithOneNode(t *testing.T) {
	one, many, never := curve(0.2, 0.4, 0.5), curve(0.2, 0.4, 0.5), curve(0.1)
	for i := range many.Curve {
		many.Curve[i].Seconds /= 4
	}
	many.Epoch /= 4
	goal := target(one, false)
	for _, r := range []*Row{one, many, never} {
		r.reach(goal, false)
		r.compare(one)
	}
	if one.Effective != 1 || one.Speedup != 1 || many.Effective != 4 || many.Speedup != 4 {
		t.Errorf("one node: %v and %v, four times as fast: %v and %v", one.Speedup, one.Effective, many.Speedup, many.Effective)
	}
	if never.Effective != 0 || never.ToTarget != 0 {
		t.Errorf("what never got there: %v after %v", never.Effective, never.ToTarget)
	}
}
