package host

import (
	"sync/atomic"
	"time"
)

// A Budget is what the sync rounds of a node and its planner may spend together of
// the processors that its workers keep busy: one part in roundShare of them. Where the workers of the
// run make many steps meanwhile, whose updates are summed, rounds follow the steps, up to one part in
// most. It is processor time that counts, not time on the wall: where workers keep
// all cores busy, a round waits for its turn, and rounds would become rare just where
// much changes.
type Budget struct {
	workers  time.Duration
	ticks    float64      // of a worker's clock from round to round, at the most
	rounds   atomic.Int64 // nanoseconds of processor time spent in rounds
	planning atomic.Int64 // … and by the planner
	planned  int64        // what that was at the last round; of the goroutine of the rounds
}

const (
	roundShare = 18 // of rounds; sending and receiving take several times as much
	planShare  = 9  // of the planner
	most       = 4  // of either, where it follows the ticks of the workers' clocks
	roundTicks = 64 // of all workers of the run together, from round to round
	MinPause   = 200 * time.Microsecond
	maxPause   = 100 * time.Millisecond
)

// NewBudget returns the budget of a node with so many workers, in a run of so many such nodes.
func NewBudget(workers, nodes int) *Budget {
	return &Budget{workers: time.Duration(workers), ticks: max(roundTicks/float64(workers*max(nodes, 1)), 1)}
}

// Round takes note of what a round cost, in processor time, and returns for how long to
// wait before the next: from MinPause to 100 ms. The shortest tick of a worker's clock is
// in seconds; 0 if it is not known. It belongs to the goroutine of the rounds.
func (b *Budget) Round(cost time.Duration, tick float64) time.Duration {
	b.rounds.Add(int64(cost))
	planning := b.planning.Load()
	since := time.Duration(planning - b.planned) // comes out of the share of the rounds
	b.planned = planning
	return b.pause(cost, since, roundShare, tick*b.ticks)
}

// Plan is Round of the planner, which follows each tick.
func (b *Budget) Plan(cost time.Duration, tick float64) time.Duration {
	b.planning.Add(int64(cost))
	return b.pause(cost, 0, planShare, tick)
}

// pause says how long to wait after something that cost so much, where something else
// cost as much as other meanwhile, to take one part in share together; and no longer than so many seconds,
// unless they are 0.
func (b *Budget) pause(cost, other, share time.Duration, longest float64) time.Duration {
	d := (cost+other)*share/b.workers - cost
	if longest > 0 {
		d = min(d, time.Duration(longest*float64(time.Second)))
	}
	return min(max(d, (cost+other)*most/b.workers-cost, MinPause), maxPause)
}

// Spent returns the processor time that rounds and planner took so far.
func (b *Budget) Spent() time.Duration {
	return time.Duration(b.rounds.Load() + b.planning.Load())
}

// Shorter returns the shorter of two times between ticks, of which 0 is not known.
func Shorter(a, b float64) float64 {
	if a == 0 || 0 < b && b < a {
		return b
	}
	return a
}
