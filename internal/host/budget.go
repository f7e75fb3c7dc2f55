package host

import (
	"sync/atomic"
	"time"
)

// A Budget is what the sync rounds of a node and its planner may spend together of
// the processors that its workers keep busy: one part in share of them. Where the
// workers' clocks tick faster than that, rounds follow the ticks, up to one part in
// most. It is processor time that counts, not time on the wall: where workers keep
// all cores busy, a round waits for its turn, and rounds would become rare just where
// much changes.
type Budget struct {
	workers  time.Duration
	rounds   atomic.Int64 // nanoseconds of processor time spent in rounds
	planning atomic.Int64 // … and by the planner
	planned  int64        // what that was at the last round; of the goroutine of the rounds
}

const (
	share    = 9 // one part in share of the workers' processors; sending and receiving take several times as much
	most     = 4 // … and where workers tick faster than that, one part in most
	MinPause = 200 * time.Microsecond
	maxPause = 100 * time.Millisecond
)

// NewBudget returns the budget of a node with so many workers.
func NewBudget(workers int) *Budget { return &Budget{workers: time.Duration(workers)} }

// Round takes note of what a round cost, in processor time, and returns for how long to
// wait before the next: from MinPause to 100 ms. The shortest tick of a worker's clock is
// in seconds; 0 if it is not known. It belongs to the goroutine of the rounds.
func (b *Budget) Round(cost time.Duration, tick float64) time.Duration {
	b.rounds.Add(int64(cost))
	planning := b.planning.Load()
	since := time.Duration(planning - b.planned) // comes out of the share of the rounds
	b.planned = planning
	return b.pause(cost, since, tick)
}

// Plan is Round of the planner.
func (b *Budget) Plan(cost time.Duration, tick float64) time.Duration {
	b.planning.Add(int64(cost))
	return b.pause(cost, 0, tick)
}

// pause says how long to wait after something that cost so much, where something else
// cost as much as other meanwhile.
func (b *Budget) pause(cost, other time.Duration, tick float64) time.Duration {
	d := (cost+other)*share/b.workers - cost
	if tick > 0 {
		d = min(d, time.Duration(tick*float64(time.Second)))
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
