package host

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestRoundsAndThePlannerKeepToTheirShares(t *testing.T) {
	b := NewBudget(1, 1)
	if d := b.Round(ms, 0); d != (roundShare-1)*ms {
		t.Errorf("after a round that cost 1 ms, the next waits for %v, want %v", d, (roundShare-1)*ms)
	}
	if d := b.Plan(ms, 0); d != (planShare-1)*ms {
		t.Errorf("after 1 ms the planner waits for %v, want %v", d, (planShare-1)*ms)
	}
	if d := b.Plan(ms, 5e-3); d != 5*ms {
		t.Errorf("the planner waits for %v where a tick takes 5 ms", d)
	}
	if d := b.Plan(ms, 1e-6); d != (most-1)*ms {
		t.Errorf("the planner waits for %v where ticks are short, want %v", d, (most-1)*ms)
	}
	if d := b.Round(ms, 0); d != 4*roundShare*ms-ms {
		t.Errorf("a round waits for %v after the planner took 3 ms", d)
	}
	if d := b.Round(ms, 0); d != (roundShare-1)*ms {
		t.Errorf("what the planner took counts twice: a round waits for %v", d)
	}
	if d := b.Round(0, 0); d != MinPause {
		t.Errorf("after a round that cost nothing, the next waits for %v, want %v", d, MinPause)
	}
	if d := b.Spent(); d != 6*ms {
		t.Errorf("%v were spent, want 6 ms", d)
	}
}

// The more workers a run has, the fewer steps of each may be between rounds.
func TestRoundsFollowTheStepsOfAllWorkers(t *testing.T) {
	for _, c := range []struct {
		workers, nodes int
		tick           float64 // in milliseconds
		want           time.Duration
	}{
		{1, 4, 10, (roundShare - 1) * ms},    // few steps meanwhile
		{1, 4, 0.5, roundTicks * ms / 2 / 4}, // as many as may be
		{1, 4, 0.01, (most - 1) * ms},        // more, but rounds would take too much
		{1, 1000, 7, 7 * ms},                 // at least one
		{4, 4, 0.1, 4 * ms / 10},             // four processors
		{4, 4, 100, roundShare*ms/4 - ms},    // …
	} {
		if d := NewBudget(c.workers, c.nodes).Round(ms, c.tick/1e3); (d - c.want).Abs() > time.Microsecond {
			t.Errorf("%d nodes of %d workers with steps of %v ms: after a round that cost 1 ms, the next waits for %v, want %v", c.nodes, c.workers, c.tick, d, c.want)
		}
	}
}
