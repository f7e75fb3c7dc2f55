package planner

import (
	"fmt"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/protocol/intent"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// maxHeld bounds the keys of one worker's intents that have not ended: of those to come and of steps whose values the worker is to fetch, counted once an
// intent, and those that are held. An intent that has begun counts for groupKeys more, as it takes as much memory, and a place of a plan's table of
// held keys for slotKeys: there are two to four places a key.
const (
	maxHeld   = 1 << 27
	groupKeys = 8
	slotKeys  = 2
)

// eager is a window that no intent is beyond.
const eager = 1 << 40

// An Announcer is what one worker announces by. Announce, Advanced and Missed are for the
// worker's goroutine; what it counts, any goroutine may read. The zero Announcer only
// counts.
type Announcer struct {
	bell  *host.Bell
	clock *tick.Clock
	idle  idleClock

	next    atomic.Int64                           // the clock at which the planner has something to do for this worker
	ahead   atomic.Int64                           // the window that the planner acts on
	late    atomic.Uint64                          // announced accesses that found their key on its way
	missed  atomic.Uint64                          // … although they were announced in time
	excused atomic.Int64                           // until this clock, intents were announced too late
	crossed atomic.Int64                           // the clock of the last barrier: keys of steps before whose main copies are here do not stay wanted
	said    struct{ n, keys, ahead atomic.Uint64 } // see Said; the worker alone adds

	inbox struct { // announced intents that the planner has not seen
		preempt.Mutex
		spans []span
	}
	held struct { // what bounds announcements
		keys   atomic.Int64 // in inbox, plans and due, and those that are near
		groups atomic.Int64 // of the plans
		slots  atomic.Int64 // … for keys of intents that have begun
		near   int          // keys of steps that the worker has taken and whose values it is still to fetch; of its goroutine
	}
	pace struct { // of the worker's steps
		took   atomic.Int64 // twice intent.Pace.Took, and 1 if Fetched: whether they take long enough for it to fetch values ahead
		long   atomic.Int64
		waited atomic.Int64 // nanoseconds that the worker's calls waited in all
	}
	due struct { // steps whose values the worker is to fetch
		preempt.Mutex
		steps []Step
	}

	// of whoever acts on this worker's intents: one goroutine at a time
	plan        intent.Plan
	steps       intent.Plan // those that the worker may fetch; what it does not fetch stays wanted for some time after its step (intent.Timer.Stay)
	timer       intent.Timer
	missedSeen  uint64
	crossedSeen godwit.Clock

	told struct{ planned, fetched Told } // nil: nobody is; the first is of who acts on the intents, the other of the worker's goroutine
}

// A Told is told how keys are got, and from what that was decided. One goroutine calls it at a time.
type Told func(keys []godwit.Key, u intent.Use)

func (t Told) tell(keys []godwit.Key, u intent.Use) {
	if t != nil {
		t(keys, u)
	}
}

// A span is an announced intent.
type span struct {
	keys       []godwit.Key
	start, end godwit.Clock
	step       bool // the worker may fetch the values itself
}

// A Step is keys that a worker announced for one of its steps.
type Step struct {
	Keys []godwit.Key
	At   godwit.Clock
}

func newAnnouncer(id godwit.WorkerID, clock *tick.Clock, bell *host.Bell) *Announcer {
	a := &Announcer{bell: bell, clock: clock, idle: idleClock{worker: id}}
	a.next.Store(int64(godwit.Forever))
	return a
}

// Announcing is told that the worker announces so many keys, however it gets them. The worker has made so many calls before that accessed keys.
func (a *Announcer) Announcing(keys int, start, end godwit.Clock, calls uint64) {
	if nothing(keys, start, end, a.clock.Now()) {
		return
	}
	a.idle.announced(start, calls)
	a.count(keys, start-a.clock.Now())
}

// nothing reports whether an intent for so many keys asks for nothing at a clock.
func nothing(keys int, start, end, now godwit.Clock) bool {
	return keys == 0 || end <= start || end <= now
}

// Announce has the planner act on keys when it is time to. They belong to the caller. If step is set, the keys are for one
// step, and the worker fetches their values itself where its steps are long (see Long and
// TakeDue). An error wraps godwit.ErrFull: too many keys are announced.
func (a *Announcer) Announce(keys []godwit.Key, start, end godwit.Clock, step bool) error {
	if nothing(len(keys), start, end, a.clock.Now()) {
		return nil
	}
	groups, slots := a.held.groups.Load(), a.held.slots.Load()
	if held := a.held.keys.Add(int64(len(keys))); held+groupKeys*groups+slotKeys*slots > maxHeld {
		a.held.keys.Add(-int64(len(keys)))
		return fmt.Errorf("%w: %d keys are announced already, and %d intents, which count %d each and %d for the table of their keys, have begun and not ended; %d keys more exceed %d: announce fewer at a time, less far ahead, or intents that end sooner",
			godwit.ErrFull, held-int64(len(keys)), groups, groupKeys, slotKeys*slots, len(keys), maxHeld)
	}
	own := append(make([]godwit.Key, 0, len(keys)), keys...)
	start = max(start, 0) // clocks begin there; and less leaves no room for the window
	a.inbox.Lock()
	a.inbox.spans = append(a.inbox.spans, span{own, start, end, step})
	first := int64(start)-a.ahead.Load() < a.next.Load() // under the lock: the planner may be about to set both
	a.inbox.Unlock()
	if first {
		a.bell.Ring()
	}
	return nil
}

// count takes note of an intent that begins so many clocks ahead.
func (a *Announcer) count(keys int, ahead godwit.Clock) {
	s := &a.said
	s.n.Store(s.n.Load() + 1)
	s.keys.Store(s.keys.Load() + uint64(keys))
	s.ahead.Store(s.ahead.Load() + uint64(max(0, ahead)))
}

// Steps is told how long the worker's steps take, by which it fetches values ahead or not.
func (a *Announcer) Steps(p intent.Pace) {
	a.pace.long.Store(p.Long)
	fetched := int64(0)
	if p.Fetched {
		fetched = 1
	}
	a.pace.took.Store(p.Took<<1 | fetched)
}

// stepsOf returns what Steps was told last.
func (a *Announcer) stepsOf() intent.Pace {
	p := a.pace.took.Load()
	return intent.Pace{Took: p >> 1, Fetched: p&1 != 0, Long: a.pace.long.Load()}
}

// Fetched is told that the worker, whose steps are long, fetches the values of keys that it announced at once.
func (a *Announcer) Fetched(keys []godwit.Key) {
	a.told.fetched.tell(keys, intent.Use{Pace: a.stepsOf(), Step: true, Window: godwit.Clock(a.ahead.Load())})
}

// hand has the worker fetch the values of a step.
func (a *Announcer) hand(s Step) {
	a.held.keys.Add(int64(len(s.Keys)))
	a.due.Lock()
	a.due.steps = append(a.due.steps, s)
	a.due.Unlock()
}

// TakeDue returns the steps whose values the worker is to fetch, each once: those that have come
// near since the last call.
func (a *Announcer) TakeDue() []Step {
	a.due.Lock()
	defer a.due.Unlock()
	steps := a.due.steps
	a.due.steps = nil
	for _, s := range steps {
		a.held.keys.Add(-int64(len(s.Keys)))
	}
	return steps
}

// Near is told of how many keys the worker is still to fetch the values, of the steps that TakeDue has returned.
func (a *Announcer) Near(keys int) {
	if keys != a.held.near {
		a.held.keys.Add(int64(keys - a.held.near))
		a.held.near = keys
	}
}

// Advanced is told that the worker's clock went on to another one, and for how many nanoseconds the worker's calls have waited in all.
func (a *Announcer) Advanced(to godwit.Clock, waited int64) {
	a.pace.waited.Store(waited)
	a.idle.told = true
	if int64(to) >= a.next.Load() {
		a.bell.Ring()
	}
}

// Crossed is told that the worker, at a clock, has crossed a barrier. Programs put one between phases, and in the next one another node may
// use what this one used alone: keys of steps that are over, whose main copies are here, do not stay wanted behind it. Else they would be
// copied to their next user instead of moving there. Replicas stay: what several nodes used in one phase, they mostly use in the next one.
func (a *Announcer) Crossed(at godwit.Clock) {
	a.crossed.Store(int64(at))
	a.bell.Ring()
}

// Missed is told that the worker, at a clock, accessed an announced key that was on its way.
func (a *Announcer) Missed(at godwit.Clock) {
	a.late.Store(a.late.Load() + 1) // has one writer, and so has missed
	if int64(at) >= a.excused.Load() {
		a.missed.Store(a.missed.Load() + 1)
	}
}

// Late returns how many accesses were Missed.
func (a *Announcer) Late() uint64 { return a.late.Load() }

// Window returns for how many clocks ahead intents are due.
func (a *Announcer) Window() int64 { return a.ahead.Load() }

// keys returns how many keys the plans hold.
func (a *Announcer) keys() int { return a.plan.Keys() + a.steps.Keys() }

// take takes what was announced since the planner's last look.
func (a *Announcer) take() []span {
	a.inbox.Lock()
	defer a.inbox.Unlock()
	spans := a.inbox.spans
	a.inbox.spans = nil
	return spans
}

// file puts an announced intent into a plan.
func (a *Announcer) file(s span) {
	if s.step {
		a.steps.Add(s.keys, s.start, s.end)
	} else {
		a.plan.Add(s.keys, s.start, s.end)
	}
}

// Return gives a step back that TakeDue returned, whose values the worker will not fetch as its steps are short: the planner is to act on its
// keys. They are the planner's.
func (a *Announcer) Return(s Step) {
	a.held.keys.Add(int64(len(s.Keys)))
	a.inbox.Lock()
	a.inbox.spans = append(a.inbox.spans, span{s.Keys, s.At, s.At + 1, true})
	a.inbox.Unlock()
	a.bell.Ring()
}

// lookAgain is for how many clocks the planner sleeps at most while keys of steps are wanted: it measures then for how long these stay, which may
// have become much less.
const lookAgain = 64

// sleepUntil has the worker wake the planner when the next intent of the plan is within a
// window or ends, those of steps so many clocks later, and the planner go on if that is so already.
func (a *Announcer) sleepUntil(window, stay godwit.Clock) {
	a.inbox.Lock()
	a.ahead.Store(int64(window))
	next := min(a.plan.Next(window, 0), a.steps.Next(window, stay))
	if a.steps.Keys() > 0 {
		next = min(next, a.clock.Now()+lookAgain)
	}
	a.next.Store(int64(next))
	if len(a.inbox.spans) > 0 {
		a.bell.Ring() // announced meanwhile, and judged by what was just replaced
	}
	a.inbox.Unlock()
	if a.clock.Now() >= godwit.Clock(a.next.Load()) {
		a.bell.Ring() // the worker went on meanwhile
	}
}
