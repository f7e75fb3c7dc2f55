package cut

import (
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
)

// A Party is a worker as cuts see it. It belongs to the worker's goroutine.
type Party struct {
	cuts    *Cuts
	id      godwit.WorkerID
	cross   func()        // changes the side of what the worker does
	crossed atomic.Uint64 // into how many cuts

	mu     preempt.Mutex
	parked bool // the worker does nothing until Unpark
	on     func(cut uint64)
}

// OnCut has f called with the number of each cut into which the worker crosses.
func (p *Party) OnCut(f func(cut uint64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = f
}

// Come says that the worker is at a step boundary.
func (p *Party) Come() {
	if p.crossed.Load() == p.cuts.asked.Load() {
		return
	}
	began := p.cuts.Host.Now()
	p.mu.Lock()
	p.follow()
	p.mu.Unlock()
	p.cuts.waited(p.cuts.Host.Now() - began)
}

// Park says that the worker is at a step boundary until Unpark: others may cross for it.
func (p *Party) Park() {
	p.Come()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parked = true
}

// Unpark says that the worker goes on.
func (p *Party) Unpark() {
	p.mu.Lock()
	p.parked = false
	p.mu.Unlock()
	p.Come()
}

// over reports whether the worker has crossed into all cuts, and crosses for one that is parked.
func (p *Party) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parked {
		p.follow()
	}
	return p.crossed.Load() == p.cuts.asked.Load()
}

// follow crosses into the cut that was asked for, if there is one. The lock is held.
func (p *Party) follow() {
	if p.crossed.Load() == p.cuts.asked.Load() {
		return
	}
	p.cross()
	p.crossed.Add(1)
	if p.on != nil {
		p.on(p.cuts.number.Load())
	}
}
