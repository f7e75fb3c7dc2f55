package node

import (
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/shards"
)

// The planner acts on intents when they become due, and ends them: one goroutine
// that sleeps while there is nothing to do. It takes the time that this needs,
// but looks again no sooner than the rounds would (see [host.Budget]), so that there is
// much to do at once.
type planner struct {
	n    *Node
	out  link.Sender
	bell *host.Bell

	leads  atomic.Uint64 // nanoseconds that actions took, summed since the last look
	nleads atomic.Uint64

	order shards.Order // of announced keys

	keys int     // begun, ended or sent this time
	gap  float64 // seconds from one time to the next while there is work, smoothed
}

func newPlanner(n *Node) *planner {
	return &planner{n: n, out: n.links.Sender(), bell: host.NewBell()}
}

func (p *planner) run() {
	h := p.n.Host
	act := func() {
		p.act()
		h.Worked(p.keys)
	}
	for h.Wait(p.bell.Rung(), h.Stop(), nil) == 0 {
		p.bell.Awake()
		began := h.Now()
		p.keys = 0
		cost := time.Duration(h.Measure(act))
		d := p.n.budget.Plan(cost, p.tick())
		p.gap += 0.1 * ((time.Duration(h.Now()-began) + d).Seconds() - p.gap)
		if h.Sleep(d, h.Stop(), nil) == 0 {
			return
		}
	}
}

// tick is the shortest time between two ticks of a worker's clock, in seconds; 0
// if none is known.
func (p *planner) tick() (shortest float64) {
	for _, w := range p.n.workers {
		shortest = host.Shorter(shortest, w.timer.Tick())
	}
	return shortest
}

// lead takes note of how long keys were on their way that have come.
func (p *planner) lead(nanos, keys uint64) {
	p.leads.Add(nanos)
	p.nleads.Add(keys)
}

// act begins and ends what the workers announced.
func (p *planner) act() {
	now := p.n.Now()
	var lead float64
	n := p.nleads.Swap(0)
	if sum := p.leads.Swap(0); n > 0 {
		lead = float64(sum) / float64(n) / 1e9
	}
	for _, w := range p.n.workers {
		p.of(w, now, lead)
	}
	p.out.Flush()
	p.keys += p.out.Records
	p.out.Records = 0
}

func (p *planner) of(w *worker, now int64, lead float64) {
	w.inbox.Lock()
	spans := w.inbox.spans
	w.inbox.spans = nil
	w.inbox.Unlock()
	due := w.Clock() + w.timer.Window()
	held := w.plan.Keys()
	for _, s := range spans {
		held += len(s.keys)
		if s.start <= due {
			// Announced too late to be early: that says nothing about the window.
			w.excused.Store(max(w.excused.Load(), int64(s.end)))
		}
		p.order.Sort(p.n.rows, s.keys)
		w.plan.Add(s.keys, s.start, s.end)
	}
	if lead > 0 {
		w.timer.Lead(lead + p.gap)
	}
	clock := w.Clock()
	missed := w.missed.Load()
	window := w.timer.Observe(now, clock, missed != w.missedSeen)
	w.missedSeen = missed
	if p.n.cfg.Eager {
		window = eager
	}
	w.plan.Due(clock, window, func(keys []godwit.Key) { p.n.rows.Want(&p.out, p.acted(keys)) })
	w.plan.Expire(clock, func(keys []godwit.Key) { p.n.rows.Unwant(&p.out, p.acted(keys)) })
	w.held.Add(int64(w.plan.Keys() - held))
	w.inbox.Lock()
	w.ahead.Store(int64(window))
	w.next.Store(int64(w.plan.Next(window)))
	if len(w.inbox.spans) > 0 {
		p.bell.Ring() // announced meanwhile, and judged by what was just replaced
	}
	w.inbox.Unlock()
	if w.Clock() >= godwit.Clock(w.next.Load()) {
		p.bell.Ring() // the worker went on meanwhile
	}
}

// acted counts keys of which intents begin or end.
func (p *planner) acted(keys []godwit.Key) []godwit.Key {
	p.keys += len(keys)
	return keys
}
