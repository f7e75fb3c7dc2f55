package planner

import (
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol/intent"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// A Planner acts on intents when they become due, and ends them: one goroutine
// that sleeps while there is nothing to do. It takes the time that this needs,
// but looks again no sooner than the sync rounds would (see [host.Budget]), so that there is
// much to do at once. Where processors are free, others help it, each with the intents of one worker at a time.
type Planner struct {
	host    *host.Host
	rows    *shards.Set
	budget  *host.Budget
	eager   bool // intents are due when they are announced
	moves   bool // keys that are wanted are taken away by others who want them
	bell    *host.Bell
	workers []*Announcer
	team    *host.Team
	members []member      // of it
	now     int64         // the time of this look,
	lead    float64       // … and how long keys took to come since the last one, in seconds; 0: none came
	helped  time.Duration // processor time of helpers in this look

	leads  atomic.Uint64 // nanoseconds that actions took, summed since the last look
	nleads atomic.Uint64

	gap float64 // seconds from one look to the next while there is work, smoothed
}

// A member of the planner's team has what it works with.
type member struct {
	*Planner
	out    link.Sender
	order  shards.Order // of announced keys
	keys   int          // begun, ended or sent
	looked int          // up, of intents that began
}

// New returns the planner of a node whose workers have these clocks. If it is eager, it acts on
// intents when they are announced, however far ahead. If told is not nil, each that it returns is told how keys are got.
func New(h *host.Host, rows *shards.Set, ls *link.Links, budget *host.Budget, clocks tick.Clocks, eager bool, told func() Told) *Planner {
	p := &Planner{host: h, rows: rows, budget: budget, eager: eager, moves: rows.Moves(), bell: host.NewBell()}
	p.team = host.NewTeam(h, host.Planning, ls.Limits.Share, len(clocks), p.part)
	for range p.team.Size() {
		p.members = append(p.members, member{Planner: p, out: ls.Sender()})
	}
	for i, c := range clocks {
		a := newAnnouncer(godwit.WorkerID{Node: ls.Self, Local: i}, c, p.bell)
		if told != nil {
			a.told.planned, a.told.fetched = told(), told()
		}
		p.workers = append(p.workers, a)
	}
	return p
}

// Of returns what a worker announces by.
func (p *Planner) Of(worker int) *Announcer { return p.workers[worker] }

// Leads takes note that so many keys came that were asked for because of intents, after so many
// nanoseconds in all. Any goroutine may call it.
func (p *Planner) Leads(nanos, keys uint64) {
	p.leads.Add(nanos)
	p.nleads.Add(keys)
}

// Held returns how many keys the workers' intents hold that have not ended: each once a worker if an intent for it has begun, and else once an intent.
func (p *Planner) Held() (keys int64) {
	for _, a := range p.workers {
		keys += a.held.keys.Load()
	}
	return keys
}

// Said returns how many intents the workers announced, of how many keys, and for how many clocks ahead,
// summed over intents.
func (p *Planner) Said() (n, keys, ahead uint64) {
	for _, a := range p.workers {
		n, keys, ahead = n+a.said.n.Load(), keys+a.said.keys.Load(), ahead+a.said.ahead.Load()
	}
	return n, keys, ahead
}

// Helped returns how many looks at a worker's intents other goroutines than the planner's have taken.
func (p *Planner) Helped() uint64 { return p.team.Helped() }

// Run acts on intents until the node's goroutines are to end.
func (p *Planner) Run() {
	h := p.host
	for h.Wait(p.bell.Rung(), h.Stop(), nil) == 0 {
		p.bell.Awake()
		began := h.Now()
		cost := time.Duration(h.Measure(p.act)) + p.helped
		d := p.budget.Plan(cost, p.tick())
		p.gap += 0.1 * ((time.Duration(h.Now()-began) + d).Seconds() - p.gap)
		if h.Sleep(d, h.Stop(), nil) == 0 {
			return
		}
	}
}

// tick is the shortest time between two ticks of a worker's clock, in seconds; 0
// if none is known.
func (p *Planner) tick() (shortest float64) {
	for _, a := range p.workers {
		shortest = host.Shorter(shortest, a.timer.Tick())
	}
	return shortest
}

// act begins and ends what the workers announced.
func (p *Planner) act() {
	p.now, p.lead = p.host.Now(), 0
	n := p.nleads.Swap(0)
	if sum := p.leads.Swap(0); n > 0 {
		p.lead = float64(sum) / float64(n) / 1e9
	}
	p.helped = p.team.Do(len(p.workers))
	out := &p.members[0].out
	for i := range p.members[1:] {
		out.Join(&p.members[1+i].out)
	}
	out.Flush()
}

// part begins and ends, as a member of the team, what one worker announced. It returns how many keys began, ended or were sent.
func (p *Planner) part(by, worker int) (keys int) {
	m := &p.members[by]
	m.of(p.workers[worker])
	keys = m.keys + m.out.Records + m.looked/lookedShare
	m.keys, m.out.Records, m.looked = 0, 0, 0
	return keys
}

// of begins and ends what one worker announced.
func (p *member) of(a *Announcer) {
	spans := a.take()
	due := a.clock.Now() + a.timer.Window()
	held := a.keys()
	for _, s := range spans {
		held += len(s.keys)
		if s.start <= due {
			// Announced too late to be early: that says nothing about the window, until they may have come.
			a.excused.Store(max(a.excused.Load(), int64(min(s.end, due))))
		}
		a.file(s)
	}
	if p.lead > 0 {
		a.timer.Lead(p.lead + p.gap)
	}
	clock := a.clock.Now()
	missed := a.missed.Load()
	window := a.timer.Observe(p.now-a.pace.waited.Load()/waitShare*(waitShare-1), clock, missed != a.missedSeen)
	a.missedSeen = missed
	if p.eager {
		window = eager
	}
	together := p.together(window)
	pace := a.stepsOf()
	begin := func(plan *intent.Plan, step bool) {
		u := intent.Use{Pace: pace, Step: step, Window: window}
		if u.Means() == intent.Fetch {
			plan.Due(clock, window, func(keys []godwit.Key, at godwit.Clock) {
				p.order.Sort(p.rows, keys)
				a.told.planned.tell(keys, u)
				a.hand(Step{keys, at})
			})
			return
		}
		p.looked += plan.Begin(clock, window, together, func(keys []godwit.Key) {
			p.order.Sort(p.rows, keys)
			a.told.planned.tell(keys, u)
			p.rows.Want(&p.out, p.acted(keys))
		}, func(keys []godwit.Key) {
			if p.moves {
				p.order.Sort(p.rows, keys)
				p.rows.WantAgain(&p.out, p.acted(keys))
			}
		})
	}
	begin(&a.plan, false)
	begin(&a.steps, true)
	stay := a.timer.Stay()
	end := func(keys []godwit.Key) { p.rows.Unwant(&p.out, p.acted(keys)) }
	a.plan.Expire(clock, end)
	if crossed := godwit.Clock(a.crossed.Load()); crossed > a.crossedSeen {
		a.crossedSeen = crossed
		a.steps.Sift(crossed, func(keys []godwit.Key) []godwit.Key { return p.rows.UnwantOwned(&p.out, p.acted(keys)) })
	}
	a.steps.Expire(clock-stay, end)
	a.held.keys.Add(int64(a.keys() - held))
	a.held.groups.Store(int64(a.plan.Groups() + a.steps.Groups()))
	a.held.slots.Store(int64(a.plan.Slots() + a.steps.Slots()))
	a.sleepUntil(window, stay)
}

// together returns how many clocks intents may be apart that are acted on together: few beside the
// window, so that keys are held hardly longer than they would be.
func (p *Planner) together(window godwit.Clock) godwit.Clock {
	if p.eager {
		return 1
	}
	return max(window/togetherShare, 1)
}

const togetherShare = 8

// lookedShare is how many keys that are looked up cost as much as one that begins or ends (BenchmarkHeld).
const lookedShare = 4

// waitShare is which part of what a worker waits counts as time of its steps: a program that only waits would have windows without end.
const waitShare = 8

// acted counts keys of which intents begin or end.
func (p *member) acted(keys []godwit.Key) []godwit.Key {
	p.keys += len(keys)
	return keys
}
