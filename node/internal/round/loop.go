package round

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol/intent"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// A Loop is the node's sync loop: one goroutine that runs sync rounds over the
// shards that have something to send. It sleeps while there is nothing to do.
// Intents are the planner's: where workers announce millions of keys a second, to
// begin and to end them takes longer than a round, and replicas would be old.
//
// Rounds take a bounded share of the processors that the node's workers keep
// busy ([host.Budget]). Workers that all go several steps on old copies of the same
// rows, and whose updates are then summed, may not converge. So replicas are as
// fresh as the work allows, without a rate to set. What the network cannot carry
// stays for a later round (Limits.Copies), where further updates of the same keys
// join it.
type Loop struct {
	Sync   *WaitSync
	Echoes *Echoes

	host   *host.Host
	links  *link.Links
	rows   *shards.Set
	clocks tick.Clocks // of the workers
	bell   *host.Bell
	budget *host.Budget
	setup  *tick.Setup
	stages []Stage
	first  int // of these, stages that close before WaitSync calls go on
	out    link.Sender
	over   *over
	helped time.Duration // processor time of helpers in this round
	looks  int           // at updates of replicas, by WaitSync calls in this round

	rounds atomic.Uint64
	rates  []intent.Rate // of the workers' clocks
	every  time.Duration // between rounds over the shards at least; 0: no limit
	synced int64         // when the last one was
}

// A Stage is what else takes place in the rounds of a node, in its goroutine.
type Stage interface {
	// Open begins a round. It reports whether everything must go that the holders of
	// replicas of tables with bounded staleness lack.
	Open(out *link.Sender) (press bool)
	// Close ends a round. Sent says whether the round went over the shards and sent refreshes, and held
	// whether something had to stay. It reports whether something of the stage had to.
	Close(out *link.Sender, sent, held bool) (more bool)
	// Urgent reports whether somebody waits for rounds. Any goroutine may ask.
	Urgent() bool
}

// A Config says what a loop is part of.
type Config struct {
	Host   *host.Host
	Links  *link.Links
	Rows   *shards.Set
	Clocks tick.Clocks // of the workers
	Setup  *tick.Setup // of these
	Bell   *host.Bell  // of the rounds
	Budget *host.Budget
	IDs    *atomic.Uint64 // of questions to all nodes
	Rate   float64        // rounds a second at the most; 0: no limit
	Copies bool           // the policy makes replicas
	First  []Stage        // stages, in the order of a round, whose Close comes before WaitSync calls go on,
	Last   []Stage        // … and those whose comes after
}

// New returns the sync loop of a node, which Run runs.
func New(c Config) *Loop {
	l := &Loop{host: c.Host, links: c.Links, rows: c.Rows, clocks: c.Clocks, setup: c.Setup, bell: c.Bell, budget: c.Budget, stages: slices.Concat(c.First, c.Last), first: len(c.First),
		out: c.Links.Sender(), rates: make([]intent.Rate, len(c.Clocks)), every: interval(c.Rate)}
	l.over = newOver(&c, &l.out)
	l.Sync = newWaitSync(&c)
	l.Echoes = newEchoes(&c)
	l.stages = append(l.stages, l.Echoes)
	return l
}

// interval is the time between rounds at a rate of so many a second; 0: there is no limit.
func interval(rate float64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(min(float64(time.Second)/rate, float64(time.Hour)))
}

// Rounds returns how many rounds have begun.
func (l *Loop) Rounds() uint64 { return l.rounds.Load() }

// Helped returns how many parts of rounds other goroutines than the loop's have taken.
func (l *Loop) Helped() uint64 { return l.over.team.Helped() }

// Run runs rounds until the node stops.
func (l *Loop) Run() {
	h := l.host
	held := false
	round := func() {
		held = l.Round()
		h.Worked(host.Rounds, l.out.Records+l.looks/looksRecord)
		l.out.Records = 0
	}
	for h.Wait(l.bell.Rung(), h.Stop(), nil) == 0 {
		l.bell.Awake()
		if h.Err() != nil {
			continue // the run is over, and what is left stays
		}
		l.rounds.Add(1) // before anybody sees what it did
		cost := time.Duration(h.Measure(round)) + l.helped
		d := l.budget.Round(cost, l.tick())
		if l.urgent() {
			d = host.MinPause // somebody waits for nothing else
			if held {
				d /= fullPause
			}
		}
		if held { // the pause is what the queues need to get empty, or longer
			l.bell.Ring()
		}
		if h.Sleep(d, l.bell.Hurried(), h.Stop()) == 1 {
			return
		}
	}
}

// looksRecord is how many looks at an update take as long as to send one.
const looksRecord = 4

// fullPause is which part of the least pause is made where somebody waits, and queues were full. At 10 Gbit/s they are empty then:
// with the whole pause they were so for most of the time.
const fullPause = 4

// urgent reports whether somebody waits for rounds.
func (l *Loop) urgent() bool {
	if l.Sync.Waiting() {
		return true
	}
	for _, s := range l.stages {
		if s.Urgent() {
			return true
		}
	}
	return false
}

// tick is the shortest time between two ticks of a worker's clock, in seconds; 0
// if none is known.
func (l *Loop) tick() (shortest float64) {
	now := l.host.Now()
	for i, c := range l.clocks {
		r := &l.rates[i]
		r.Observe(now, c.Now())
		shortest = host.Shorter(shortest, r.Tick())
	}
	return shortest
}

// Round does everything that is due. It reports whether something had to stay. It is for
// the goroutine of the loop, or for who stands in its place.
func (l *Loop) Round() (held bool) {
	marks, up := l.Sync.take(&l.out)
	press := false
	for _, s := range l.stages {
		press = s.Open(&l.out) || press
	}
	if l.links.Due() {
		l.rows.AskDue(&l.out)
	}
	early := l.early(l.host.Now(), len(marks) > 0)
	held, l.helped = early, 0
	up = up && !press
	if !early {
		held, l.helped = l.over.round(up, len(marks) > 0, press)
	}
	sent := !early && !up
	l.Sync.answer(&l.out, marks, held)
	more := false
	for _, s := range l.stages[:l.first] {
		more = s.Close(&l.out, sent, held) || more
	}
	l.looks = l.Sync.goOn(&l.out)
	for _, s := range l.stages[l.first:] {
		more = s.Close(&l.out, sent, held) || more
	}
	l.out.Flush()
	return held || more
}

// early reports whether the policy's rate has shards wait with what they have
// to send. Whoever waits for rounds does not wait for that.
func (l *Loop) early(now int64, marked bool) bool {
	if l.every == 0 || l.rows.Idle() {
		return false
	}
	if now < l.synced+int64(l.every) && !marked && !l.urgent() && !l.setup.Going() {
		return true
	}
	l.synced = now
	return false
}
