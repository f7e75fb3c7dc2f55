package staleness

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/virtual"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/placement"
)

// A Bound holds up reads of tables with bounded staleness until nothing is
// missing that must not be. A node without such a table has none: nothing of
// this is kept or sent.
//
// # What is known
//
// A node has *settled* a tick when all updates that its workers made before it
// have reached their keys' main copies: pushes were answered and the deltas of
// replicas acknowledged. It tells the others, and everybody takes the least of
// all nodes: at that moment the main copies contain everything from before that
// tick, wherever they are. (S1)
//
// A main copy is read with that. A replica may be older. So a node that learns
// of a greater least tick sends the holders of its keys what they lack, then the
// tick, on the same path: what the holder has of that node now contains
// everything, too. Whoever holds replicas needs that word from all nodes. (S2)
// Moves do not get in the way: a key's holders are brought up to date before it
// moves (rule R6 of package protocol), and what the old owner sends afterwards
// comes behind that.
//
// The *horizon* is the tick for which a node knows all this. A read at tick t of
// a table with the bound s waits for the horizon t - s.
//
// # When it is told
//
// The node settles and tells with its sync rounds, so what happened since goes
// together, in one record a peer. Only where a worker waits, that is told, too,
// and no node pauses until the horizon is there. (S3)
//
// Workers that wait in a barrier, and those that called Finish, are in the next
// era of ticks ([tick.Tick]). So they hold nobody up who is on the way to the barrier,
// and never make an update that somebody's read should have waited for. (S4)
type Bound struct {
	host    *host.Host
	model   *godwit.Model
	links   *link.Links
	rows    *shards.Set
	ops     *operation.Tables
	clocks  tick.Clocks // of this node's workers,
	waiters []*Waiter   // … who wait by these
	rounds  *host.Bell
	ids     *atomic.Uint64      // of questions to all nodes
	copies  bool                // the policy replicates: S2 is needed
	broken  virtual.BrokenBound // rules that are off

	progress
	round  settling
	limits *limits
	pulls  parking

	mu      preempt.Mutex // over what follows, limits' changes and pulls
	nodes   []standing    // by node, this one's own too
	marked  tick.Tick     // all peers were sent what they lack of this
	waiting []*Waiter     // for the horizon to reach their need
}

// progress is what is read without the bound's lock. It is written under the lock, but for
// least, and flying where settling begins.
type progress struct {
	horizon atomic.Uint64 // a tick: see above
	least   atomic.Uint64 // the least tick of this node's workers that was seen
	wanted  atomic.Uint64 // the greatest tick that a worker anywhere waits for
	settled atomic.Uint64 // by this node
	urgent  atomic.Bool   // somebody waits for what this node has to do
	flying  atomic.Bool   // updates are on their way that settling waits for
}

// A Waiter is a worker as the bound sees it.
type Waiter struct {
	Granted chan struct{} // holds a token when the horizon that the worker waits for is there

	clock *tick.Clock
	need  tick.Tick // that horizon; under the bound's lock
}

// Waiter returns a worker of the node as the bound sees it, nil if there is no bound.
func (b *Bound) Waiter(worker int) *Waiter {
	if b == nil {
		return nil
	}
	return b.waiters[worker]
}

// standing is what a node says of itself.
type standing struct {
	settled, fresh, wanted tick.Tick
	slowest                int  // the worker that it waits for
	flying                 bool // it waits for others to acknowledge its updates
}

// A Config says what a bound is part of.
type Config struct {
	Host   *host.Host
	Links  *link.Links
	Rows   *shards.Set
	Ops    *operation.Tables
	Clocks tick.Clocks // of this node's workers
	Rounds *host.Bell
	IDs    *atomic.Uint64 // of questions to all nodes
	Proto  *protocol.Config
	Start  tick.Tick           // where all workers begin
	Broken virtual.BrokenBound // rules that are off
}

// New returns nil if no table has bounded staleness.
func New(c Config) *Bound {
	m := c.Proto.Model
	if !m.Bounded() {
		return nil
	}
	nodes := c.Links.Nodes()
	b := &Bound{host: c.Host, model: m, links: c.Links, rows: c.Rows, ops: c.Ops, clocks: c.Clocks, rounds: c.Rounds, ids: c.IDs,
		copies: nodes > 1 && placement.Replicates(c.Proto.Policy), broken: c.Broken, nodes: make([]standing, nodes), limits: newLimits(m)}
	b.pulls.of, b.pulls.most = make([]int, nodes), c.Links.Limits.Ahead
	b.round.fresh, b.round.told = make([]tick.Tick, nodes), make([]standing, nodes)
	for _, clock := range c.Clocks {
		b.waiters = append(b.waiters, &Waiter{Granted: make(chan struct{}, 1), clock: clock})
	}
	b.start(c.Start)
	return b
}

// start has everything begin at a tick.
func (b *Bound) start(t tick.Tick) {
	for _, x := range []*atomic.Uint64{&b.horizon, &b.least, &b.wanted, &b.settled} {
		x.Store(uint64(t))
	}
	b.marked, b.round.goal = t, t
	for i := range b.nodes {
		b.nodes[i] = standing{settled: t, fresh: t, wanted: t}
		b.round.told[i], b.round.fresh[i] = b.nodes[i], t
	}
}

// needs returns the horizon that a read at a tick needs under a limit; 0: none.
func needs(t tick.Tick, limit int64) tick.Tick {
	if limit == Unlimited {
		return 0
	}
	return t.Back(limit)
}

// Reaches reports whether the horizon is as far as a tick; 0 is always reached.
func (b *Bound) Reaches(t tick.Tick) bool {
	preempt.Point()
	return t == 0 || !tick.Tick(b.horizon.Load()).Before(t)
}

// Readable reports whether a worker may read any table now.
func (b *Bound) Readable(w *Waiter) bool {
	return b.Reaches(needs(w.clock.Tick(), b.limits.tight.Load()))
}

// Allows reports whether a worker may read keys now.
func (b *Bound) Allows(w *Waiter, keys []godwit.Key) bool {
	return b.Readable(w) || b.Reaches(b.need(w, keys))
}

// need returns the horizon that a worker's read of keys needs.
func (b *Bound) need(w *Waiter, keys []godwit.Key) tick.Tick {
	limit := Unlimited
	for _, k := range keys {
		i, _ := b.model.Locate(k)
		limit = min(limit, b.limits.each[i].Load())
	}
	return needs(w.clock.Tick(), limit)
}

// Await has a worker hear, by its Waiter, of the horizon that its read of keys needs. It
// reports false if that is there.
func (b *Bound) Await(w *Waiter, keys []godwit.Key) bool {
	need := b.need(w, keys)
	b.mu.Lock()
	if b.Reaches(need) {
		b.mu.Unlock()
		return false
	}
	w.need = need
	b.waiting = append(b.waiting, w)
	b.want(need)
	b.mu.Unlock()
	b.rounds.Ring()
	b.rounds.Hurry()
	return true
}

// Want notes that a worker of this node waits for a tick, and has the rounds see to it.
func (b *Bound) Want(t tick.Tick) {
	b.mu.Lock()
	b.want(t)
	b.mu.Unlock()
	b.rounds.Ring()
	b.rounds.Hurry()
}

// want notes that a worker of this node waits for a tick. The lock is held.
func (b *Bound) want(t tick.Tick) {
	if s := &b.nodes[b.links.Self]; s.wanted.Before(t) {
		s.wanted = t
		b.hasten()
	}
}

// Waits returns the tick that a worker waits for, and whether it waits for one.
func (b *Bound) Waits(w *Waiter) (need tick.Tick, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return w.need, slices.Contains(b.waiting, w)
}

// GiveUp ends a worker's wait in vain. It says what it waited for, and for which node.
func (b *Bound) GiveUp(w *Waiter) (what string, peer godwit.NodeID) {
	need := b.forsake(w)
	who, peer := b.Behind(need)
	return fmt.Sprintf("waiting for updates before %v: %s: ", need, who), peer
}

// forsake ends a worker's wait, and says for which tick it waited.
func (b *Bound) forsake(w *Waiter) (need tick.Tick) {
	b.mu.Lock()
	if i := slices.Index(b.waiting, w); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	need = w.need
	b.mu.Unlock()
	select {
	case <-w.Granted:
	default:
	}
	return need
}

// Behind says who holds up those that wait for a tick.
func (b *Bound) Behind(need tick.Tick) (who string, peer godwit.NodeID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := 0
	for i := range b.nodes {
		if b.nodes[i].settled.Before(b.nodes[last].settled) {
			last = i
		}
	}
	s := b.nodes[last]
	if !s.settled.Before(need) {
		for i := range b.nodes {
			if i != int(b.links.Self) && b.copies && b.nodes[i].fresh.Before(need) {
				return fmt.Sprintf("node %d has not refreshed the replicas here", i), godwit.NodeID(i)
			}
		}
		return "nobody is behind any more", godwit.NoNode
	}
	id := godwit.WorkerID{Node: godwit.NodeID(last), Local: s.slowest}
	if last == int(b.links.Self) {
		s.settled, id.Local = b.clocks.Least()
		s.flying = !s.settled.Before(need)
	}
	if s.flying {
		return fmt.Sprintf("updates of node %d are on their way", last), id.Node
	}
	return fmt.Sprintf("%v is at %v", id, s.settled), id.Node
}

// advanced takes note that a worker went on from a tick.
func (b *Bound) advanced(from tick.Tick) {
	if tick.Tick(b.least.Load()).Before(from) {
		return // others hold the node back
	}
	for {
		preempt.Point()
		m, _ := b.clocks.Least()
		preempt.Point()
		if l := b.least.Load(); tick.Tick(l).Before(m) {
			b.least.CompareAndSwap(l, uint64(m))
		}
		// A worker that went on from m before it was stored relies on this look.
		if again, _ := b.clocks.Least(); again == m {
			break
		}
	}
	b.Stir()
}

// Stir has the rounds look whether there is more to settle or to tell.
func (b *Bound) Stir() {
	b.rounds.Ring()
	preempt.Point()
	if b.urgent.Load() || b.owes() {
		b.rounds.Hurry()
	}
}

// owes reports whether somebody waits for more to be settled here than is, and
// the workers are farther.
func (b *Bound) owes() bool {
	preempt.Point()
	settled := tick.Tick(b.settled.Load())
	if !settled.Before(tick.Tick(b.wanted.Load())) {
		return false
	}
	least, _ := b.clocks.Least()
	return settled.Before(least)
}

// Urgent reports whether somebody waits for what this node has to do.
func (b *Bound) Urgent() bool { return b != nil && b.urgent.Load() }

// Settling reports whether anything that comes may be what settling waits for.
func (b *Bound) Settling() bool { return b != nil && b.flying.Load() }

// Enter has a worker go to the next era, if it is not there already.
func (b *Bound) Enter(c *tick.Clock) {
	if b.broken.KeepEra {
		return
	}
	if from, on := c.Enter(); on {
		b.advanced(from)
	}
}

// Advance takes note that a worker went to its next clock.
func (b *Bound) Advance(c *tick.Clock) {
	if from, on := c.Follow(); on {
		b.advanced(from)
	}
}

// Leave lets nobody wait for this node's workers any more.
func (b *Bound) Leave() {
	for _, c := range b.clocks {
		c.Leave()
	}
	b.Stir()
}

// heard takes what a peer says of itself.
func (b *Bound) heard(from godwit.NodeID, r *wire.Record) {
	b.mu.Lock()
	s := &b.nodes[from]
	s.settled = tick.Max(s.settled, tick.Tick(r.Op))
	s.fresh = tick.Max(s.fresh, tick.Tick(r.Seq))
	s.wanted = tick.Max(s.wanted, tick.Tick(r.Version))
	s.slowest, s.flying = int(r.Key>>1), r.Key&1 != 0
	b.moved()
	served := b.someDue()
	b.mu.Unlock()
	b.Stir()
	if served {
		b.rounds.Hurry()
	}
}

// all returns the least tick that all nodes have settled. The lock is held.
func (b *Bound) all() tick.Tick {
	least := b.nodes[0].settled
	for i := range b.nodes {
		least = tick.Min(least, b.nodes[i].settled)
	}
	return least
}

// moved finds the horizon anew, and lets go on whom that serves. The lock is held.
func (b *Bound) moved() {
	h := b.all()
	if b.copies && !b.broken.AnyCopy {
		for i := range b.nodes {
			if i != int(b.links.Self) {
				h = tick.Min(h, b.nodes[i].fresh)
			}
		}
	}
	if tick.Tick(b.horizon.Load()).Before(h) {
		b.horizon.Store(uint64(h))
		b.grant(func(need tick.Tick) bool { return !h.Before(need) })
	}
	b.hasten()
}

// grant wakes the workers whose need is reached. The lock is held.
func (b *Bound) grant(reached func(need tick.Tick) bool) {
	b.waiting = slices.DeleteFunc(b.waiting, func(w *Waiter) bool {
		if !reached(w.need) {
			return false
		}
		select {
		case w.Granted <- struct{}{}:
		default:
		}
		return true
	})
}

// hasten finds out whether somebody waits for this node. The lock is held.
func (b *Bound) hasten() {
	own := &b.nodes[b.links.Self]
	own.wanted = tick.Max(own.wanted, own.settled.Oldest())
	wanted := own.wanted
	for i := range b.nodes {
		wanted = tick.Max(wanted, b.nodes[i].wanted)
	}
	b.wanted.Store(uint64(wanted))
	b.settled.Store(uint64(own.settled))
	urgent := b.owes() || b.copies && b.marked.Before(wanted) && b.marked.Before(b.all())
	for i := range b.nodes { // which may wait for this one's word
		urgent = urgent || b.nodes[i].flying && b.nodes[i].settled.Before(wanted)
	}
	b.urgent.Store(urgent)
}

// Resting says what waits for a tick; nil if nothing does.
func (b *Bound) Resting() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting)+len(b.pulls.waiting)+len(b.limits.changes) > 0 {
		return fmt.Errorf("%d workers and %d requests wait for updates of others, %d changes of bounds for an answer", len(b.waiting), len(b.pulls.waiting), len(b.limits.changes))
	}
	return nil
}
