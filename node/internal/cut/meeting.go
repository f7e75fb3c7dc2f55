package cut

import (
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// This file is where workers cross into a cut if a table bounds staleness, or the program wants it: all at one tick, the
// first of their boundaries that is not before it. So of two changes one of which is in the cut and the other
// is not, the first has the earlier tick.
//
// Each node says with its first word of a cut which tick its workers do not come to before they know where to
// cross: some clocks from where they are; of one that is parked, the tick behind its last step. The latest of these of all nodes is where workers cross. So
// nobody has passed it, and nobody waits but a worker that is faster than the words of the nodes.
//
// A worker in a barrier is at the beginning of the next era, so who makes fewer steps in an era crosses there, and so is one that has finished: others
// may come to that era before they hear of the cut, if it comes to the barrier meanwhile. One that
// rests makes no steps for a time that nobody knows: it crosses where it is, and nobody waits for it.

// A meeting is where workers cross into the cut under way. The gate of the cuts guards it.
type meeting struct {
	anywhere bool          // at their next boundary
	reach    tick.Tick     // workers of this node go no farther while that is not known; 0: none has made a step
	where    tick.Tick     // where they cross; 0: it is not known yet
	agreed   chan struct{} // closed when it is, or anywhere
}

// at reports whether a worker whose next step is of a tick is to cross, or else whether it must wait.
func (m *meeting) at(t tick.Tick) (cross, waits bool) {
	switch {
	case m.anywhere:
		return true, false
	case m.where != 0:
		return !t.Before(m.where), false
	}
	return false, m.reach != 0 && !t.Before(m.reach)
}

// agree notes where workers cross.
func (m *meeting) agree(where tick.Tick, anywhere bool) {
	m.where, m.anywhere = where, anywhere
	close(m.agreed)
}

// A pace is a clock of a worker when a cut was asked for, from which its speed until the next one follows.
type pace struct {
	clock godwit.Clock
	at    int64 // nanoseconds
}

// agreeing is about how long it takes all nodes, at most as a rule, to hear of a cut.
const agreeing = 20 * time.Millisecond

// lead returns how many clocks a worker probably makes until all nodes have heard of a cut, one at least.
func (p *pace) lead(clock godwit.Clock, now int64) godwit.Clock {
	made, took := clock-p.clock, max(now-p.at, 1)
	*p = pace{clock, now}
	const most = 1 << 20
	return godwit.Clock(min(max(float64(made)*float64(agreeing)/float64(took), 1), most))
}

// ask asks the workers of the node to cross into the next cut, and returns their reach.
func (c *Cuts) ask() tick.Tick {
	c.gate.Lock()
	defer c.gate.Unlock()
	m := &c.meeting
	*m = meeting{anywhere: !c.Bounded && !c.OneClock || c.Rows.Proto.BrokenCut.OwnClocks, agreed: make(chan struct{})}
	// A worker looks at asked when its tick has changed, so that a tick that is read here is behind it by
	// no boundary of which it does not know.
	c.asked.Add(1)
	if m.anywhere {
		close(m.agreed)
		return 0
	}
	now := c.Host.Now()
	for _, p := range c.parties {
		t, lead := p.behind, p.pace.lead(p.clock.Now(), now)
		if p.parked == atWork && !p.early {
			t = p.clock.Tick()
			t = t.At(t.Clock() + lead)
		}
		if t != 0 && (m.reach == 0 || m.reach.Before(t)) {
			m.reach = t
		}
	}
	return m.reach
}

// meet finds out where workers cross, when all nodes have said what their workers' reach is, or the cut is
// given up.
func (c *Cuts) meet() {
	c.gate.Lock()
	m := &c.meeting
	known, where := m.anywhere || m.where != 0, m.reach
	c.gate.Unlock()
	c.mu.Lock()
	gave := c.fault != nil
	all := true
	for peer := range c.Links.All {
		p := &c.peers[peer]
		all = all && !p.before(c.number.Load(), asked)
		if t := p.reach; t != 0 && (where == 0 || where.Before(t)) {
			where = t
		}
	}
	c.mu.Unlock()
	c.gate.Lock()
	defer c.gate.Unlock()
	switch {
	case gave && known:
		m.anywhere = true
	case gave, all && !known:
		m.agree(where, gave || where == 0)
	}
}

// reachable refuses a tick of a peer's workers that they cannot be near to.
func (c *Cuts) reachable(t tick.Tick) bool {
	if t == 0 || !c.Bounded && !c.OneClock {
		return t == 0
	}
	return t&1 != 0 && c.parties[0].clock.Tick().Near(t)
}
