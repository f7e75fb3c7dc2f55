package tick

import (
	"fmt"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
)

// A Clock is the time of one worker. Only the worker's goroutine changes it; Now and
// Tick are for everybody. Each has a cache line of its own, as workers write theirs.
//
// The clock and the tick are two steps of one call of the program: the clock always
// counts, the tick only where a table bounds the staleness of its reads.
type Clock struct {
	worker   godwit.WorkerID // for errors
	clock    atomic.Int64
	tick     atomic.Uint64
	era      godwit.Clock // the clock at which the tick's era began
	barriers uint64       // that the worker saw the end of
	_        [16]byte
}

// Clocks are those of a node's workers, in their order.
type Clocks []*Clock

// NewClocks returns the clocks of a node's workers, which count so many barriers as
// behind them.
func NewClocks(node godwit.NodeID, workers int, barriers uint64) Clocks {
	all := make([]Clock, workers)
	cs := make(Clocks, workers)
	for i := range cs {
		cs[i] = &all[i]
		cs[i].worker, cs[i].barriers = godwit.WorkerID{Node: node, Local: i}, barriers
		cs[i].tick.Store(uint64(First(barriers)))
	}
	return cs
}

// Least returns the least tick of the workers, and whose it is. There must be one.
func (cs Clocks) Least() (least Tick, slowest int) {
	least = cs[0].Tick()
	for i, c := range cs[1:] {
		preempt.Point()
		if t := c.Tick(); t.Before(least) {
			least, slowest = t, i+1
		}
	}
	return least, slowest
}

// Furthest returns the clock of the worker that advanced most often.
func (cs Clocks) Furthest() (c godwit.Clock) {
	for _, x := range cs {
		c = max(c, x.Now())
	}
	return c
}

// Sum returns the clocks of all workers together, and the least.
func (cs Clocks) Sum() (sum int64, slowest godwit.Clock) {
	slowest = cs[0].Now()
	for _, x := range cs {
		c := x.Now()
		sum, slowest = sum+int64(c), min(slowest, c)
	}
	return sum, slowest
}

// Now returns how often the worker advanced.
func (c *Clock) Now() godwit.Clock { return godwit.Clock(c.clock.Load()) }

// Tick returns the worker's tick.
func (c *Clock) Tick() Tick { return Tick(c.tick.Load()) }

// TickAt returns the tick of one of the worker's clocks, which may be to come. It is
// for the worker.
func (c *Clock) TickAt(clock godwit.Clock) Tick { return c.Tick().At(max(clock, c.era) - c.era) }

// Advance has the worker go to its next clock, and returns that. The tick stays.
func (c *Clock) Advance() godwit.Clock { return godwit.Clock(c.clock.Add(1)) }

// Follow has the tick follow the clock, which was just advanced. It returns the tick
// before, and whether there is another one now: between Enter and Crossed, clocks do
// not count, and those of the era begin when all workers have come to the barrier.
func (c *Clock) Follow() (from Tick, on bool) {
	from = c.Tick()
	switch {
	case First(c.barriers).Before(from.Era()):
		c.era = c.Now()
		return from, false
	case from.Clock() == maxClock:
		panic(fmt.Sprintf("node: %v advanced %d times without a Barrier: tables with bounded staleness count no further", c.worker, int64(maxClock)))
	}
	preempt.Point()
	c.tick.Store(uint64(from + clockUnit))
	preempt.Point()
	return from, true
}

// Enter has the tick go to the next era, and returns the one before, and whether it
// was not there already.
func (c *Clock) Enter() (from Tick, on bool) {
	from = c.Tick()
	to := First(c.barriers + 1)
	if !from.Before(to) {
		return from, false
	}
	c.era = c.Now()
	preempt.Point()
	c.tick.Store(uint64(to))
	preempt.Point()
	return from, true
}

// Crossed is told that the worker saw the end of a barrier.
func (c *Clock) Crossed() { c.barriers++ }

// Leave has the tick be beyond all that anybody's reads will wait for, when the node
// is about to end. Others can go to one more barrier at most without its workers, so
// that is two eras ahead. Any goroutine may call it; a worker that advances
// at the same time may undo it.
func (c *Clock) Leave() { c.tick.Store(uint64(c.Tick().Era() + 2*eraUnit)) }
