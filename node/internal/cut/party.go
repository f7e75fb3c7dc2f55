package cut

import (
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// A Party is a worker as cuts see it. It belongs to the worker's goroutine; what is not atomic is
// guarded by the gate of the cuts.
type Party struct {
	cuts    *Cuts
	id      godwit.WorkerID
	clock   *tick.Clock
	cross   func()        // changes the side of what the worker does
	crossed atomic.Uint64 // into how many cuts

	parked parked
	behind tick.Tick // when it was parked last: the tick behind that of its last step; 0: it had made none
	early  bool      // it is in the next era, and has not come to the barrier
	on     func(cut uint64)
	pace   pace // of the goroutine of Cuts.Run
}

// A parked says whether a worker does nothing until Unpark.
type parked uint8

const (
	atWork parked = iota
	inBarrier
	atRest
)

// OnCut has f called with the number of each cut into which the worker crosses.
func (p *Party) OnCut(f func(cut uint64)) {
	p.cuts.gate.Lock()
	defer p.cuts.gate.Unlock()
	p.on = f
}

// Advance says that the worker went to its next clock.
func (p *Party) Advance() {
	if p.cuts.OneClock {
		p.clock.Follow()
	}
	p.Come()
}

// Come says that the worker is at a step boundary: what it does next is of its clock's tick. Where
// nodes have yet to agree on where workers cross, it waits if it came there soon.
func (p *Party) Come() {
	c := p.cuts
	if p.crossed.Load() == c.asked.Load() && c.full.Load() == 0 {
		return
	}
	began := c.Host.Now()
	defer func() { c.waited(c.Host.Now() - began) }()
	c.waitForRoom()
	for {
		c.gate.Lock()
		waits := p.follow()
		agreed := c.meeting.agreed
		c.gate.Unlock()
		if !waits || c.Host.Wait(agreed, c.Host.Done(), c.Host.Stop()) != 0 {
			break
		}
	}
}

// Barrier says that the worker is at a step boundary until Unpark: others may cross for it. enter, if it is not
// nil, has the worker's clock go to the next era.
func (p *Party) Barrier(enter func()) {
	p.park(inBarrier, p.entering(enter))
}

// Finish is Barrier of a worker of which nobody knows when it comes there. Until then it is at the beginning of the next era, and crosses into a
// cut where all do.
func (p *Party) Finish(enter func()) {
	p.park(atRest, p.entering(enter))
}

// entering returns what has the worker's clock go to the next era: enter, unless the clock is followed for cuts alone.
func (p *Party) entering(enter func()) func() {
	if p.cuts.OneClock {
		return func() { p.clock.Enter() }
	}
	return enter
}

// Rest says that the worker is at a step boundary until Unpark, and nobody knows when that is. It crosses into a cut at the clock
// where it is.
func (p *Party) Rest() { p.park(atRest, nil) }

func (p *Party) park(how parked, enter func()) {
	p.cuts.gate.Lock()
	defer p.cuts.gate.Unlock()
	last := p.clock.Tick()
	if enter != nil {
		enter()
	}
	if enter == nil || p.clock.Tick() != last {
		p.behind = last.At(last.Clock() + 1)
	}
	p.parked, p.early = how, how == atRest && (enter != nil || p.early)
	p.follow()
}

// Unpark says that the worker goes on.
func (p *Party) Unpark() {
	p.cuts.gate.Lock()
	p.parked = atWork
	p.cuts.gate.Unlock()
	p.Come()
}

// over reports whether the worker has crossed into all cuts, and crosses for one that is parked.
func (p *Party) over() bool {
	p.cuts.gate.Lock()
	defer p.cuts.gate.Unlock()
	if p.parked != atWork {
		p.follow()
	}
	return p.crossed.Load() == p.cuts.asked.Load()
}

// follow crosses into the cut that was asked for, if there is one and the worker is there. It reports
// whether the worker must wait until it is known where that is. The gate is locked.
func (p *Party) follow() (waits bool) {
	c := p.cuts
	if p.crossed.Load() == c.asked.Load() {
		return false
	}
	if p.parked != atRest || p.early {
		if cross, waits := c.meeting.at(p.clock.Tick()); !cross {
			return waits
		}
	}
	p.cross()
	p.crossed.Add(1)
	if p.on != nil {
		p.on(c.number.Load())
	}
	return false
}
