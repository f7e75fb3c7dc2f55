package node

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/placement"
)

// A bound holds up reads of tables with bounded staleness until nothing is
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
// The pacer settles and tells with its rounds, so what happened since goes
// together, in one record a peer. Only where a worker waits, that is told, too,
// and no node pauses until the horizon is there. (S3)
//
// Workers that wait in a barrier, and those that called Finish, are in the next
// era of ticks ([tick]). So they hold nobody up who is on the way to the barrier,
// and never make an update that somebody's read should have waited for. (S4)
type bound struct {
	n       *Node
	clocks  tick.Clocks    // of this node's workers
	copies  bool           // the policy replicates: S2 is needed
	broken  Broken         // rules that are off
	limits  []atomic.Int64 // by table: clocks, or unlimited
	tight   atomic.Int64   // the least of limits
	horizon atomic.Uint64  // a tick
	least   atomic.Uint64  // the least tick of this node's workers that was seen
	wanted  atomic.Uint64  // the greatest tick that a worker anywhere waits for
	settled atomic.Uint64  // by this node
	urgent  atomic.Bool    // somebody waits for what this node has to do
	flying  atomic.Bool    // updates are on their way that settling waits for
	count   atomic.Uint64  // pulls that came too early
	most    int            // such keys of one node

	mu      preempt.Mutex
	nodes   []standing // by node, this one's own too
	marked  tick.Tick  // all peers were sent what they lack of this
	waiting []*worker  // for the horizon to reach their need
	parked  []parking  // of the pulls that came too early, those that wait
	theirs  []int      // … how many of each node,
	soonest tick.Tick  // … and a tick that none of them waits for less than
	changes map[uint64]*change
	numbers []uint64 // by table: of the last change of its limit

	// of the pacer
	goal   tick.Tick // the least of all nodes when the round began
	target tick.Tick // is settled when flushes are done; if flying
	flush  shards.Flush
	fresh  []tick.Tick // by peer: as marked
	told   []standing  // by peer: what it was told last
}

// standing is what a node says of itself.
type standing struct {
	settled, fresh, wanted tick.Tick
	slowest                int  // the worker that it waits for
	flying                 bool // it waits for others to acknowledge its updates
}

// unlimited is the limit of a table that has no bound any more.
const unlimited = int64(1) << 62

// Broken switches rules of bounded staleness off, so that tests can show that
// they would notice. See type bound; that S1 waits for acknowledgements is
// protocol.Broken.FlushAtSend.
type Broken struct {
	// PushesFirst, S1: the look at unanswered pushes comes before that at the tick. A
	// storm can notice only if it comes between (package preempt).
	PushesFirst bool

	SettleOpen bool // S1: pushes that were not answered count as settled
	MarkFirst  bool // S2: the tick goes before what the holders lack
	SpareIdle  bool // S2: copies that are not used go on being refreshed more rarely
	AnyCopy    bool // S2: replicas are read as if they were main copies
	KeepEra    bool // S4: a barrier ends no era
	AfterAny   bool // pulls that depend on a tick are served at once
}

// newBound returns nil if no table has bounded staleness.
func newBound(n *Node) *bound {
	if !n.model.Bounded() {
		return nil
	}
	nodes := n.links.Nodes()
	b := &bound{n: n, clocks: n.clocks, copies: nodes > 1 && replicates(n.proto.Policy), nodes: make([]standing, nodes), changes: map[uint64]*change{}, theirs: make([]int, nodes), most: n.links.Limits.Ahead,
		limits: make([]atomic.Int64, n.model.Tables()), numbers: make([]uint64, n.model.Tables()), fresh: make([]tick.Tick, nodes), told: make([]standing, nodes)}
	b.start(tick.First(n.cfg.barriers()))
	for i := range b.limits {
		s, ok := n.model.Table(i).Staleness.Clocks()
		b.limits[i].Store(limitOf(s, ok))
	}
	if n.cfg.Virtual != nil {
		b.broken = n.cfg.Virtual.BrokenBound
	}
	b.tighten()
	return b
}

// start has everything begin at a tick.
func (b *bound) start(t tick.Tick) {
	for _, x := range []*atomic.Uint64{&b.horizon, &b.least, &b.wanted, &b.settled} {
		x.Store(uint64(t))
	}
	b.marked, b.goal = t, t
	for i := range b.nodes {
		b.nodes[i] = standing{settled: t, fresh: t, wanted: t}
		b.told[i], b.fresh[i] = b.nodes[i], t
	}
}

func limitOf(s godwit.Clock, ok bool) int64 {
	if !ok {
		return unlimited
	}
	return int64(s)
}

// replicates reports whether a policy ever makes replicas.
func replicates(p placement.Policy) bool {
	return p.Everywhere(true) || p.Everywhere(false) || p.OnIntent(true) == placement.Copy || p.OnIntent(false) == placement.Copy
}

// tighten finds the least limit.
func (b *bound) tighten() {
	least := unlimited
	for i := range b.limits {
		least = min(least, b.limits[i].Load())
	}
	b.tight.Store(least)
}

// needs returns the horizon that a read at a tick needs under a limit; 0: none.
func needs(t tick.Tick, limit int64) tick.Tick {
	if limit == unlimited {
		return 0
	}
	return t.Back(limit)
}

// reaches reports whether the horizon is as far as a tick; 0 is always reached.
func (b *bound) reaches(t tick.Tick) bool {
	preempt.Point()
	return t == 0 || !tick.Tick(b.horizon.Load()).Before(t)
}

// readable reports whether a worker may read any table now.
func (b *bound) readable(w *worker) bool {
	return b.reaches(needs(w.clock.Tick(), b.tight.Load()))
}

// need returns the horizon that a worker's read of keys needs.
func (b *bound) need(w *worker, keys []godwit.Key) tick.Tick {
	limit := unlimited
	for _, k := range keys {
		i, _ := b.n.model.Locate(k)
		limit = min(limit, b.limits[i].Load())
	}
	return needs(w.clock.Tick(), limit)
}

// admit waits until a worker may read keys.
func (b *bound) admit(ctx context.Context, w *worker, what string, keys []godwit.Key) error {
	if b.readable(w) || b.reaches(b.need(w, keys)) {
		return nil
	}
	began := b.n.Now()
	defer func() { w.blocked(b.n.Now() - began) }()
	for {
		need := b.need(w, keys)
		if !b.await(w, need) {
			return nil
		}
		switch w.pause(ctx, w.granted) {
		case 1:
			return b.forsake(w, what, keys, context.Cause(ctx))
		case 2:
			return w.fail(what, keys, b.n.Err())
		}
	}
}

// await has a worker hear of the horizon that it needs, unless that is there.
func (b *bound) await(w *worker, need tick.Tick) bool {
	b.mu.Lock()
	if b.reaches(need) {
		b.mu.Unlock()
		return false
	}
	w.need = need
	b.waiting = append(b.waiting, w)
	b.want(need)
	b.mu.Unlock()
	b.n.pacer.bell.Ring()
	b.n.pacer.bell.Hurry()
	return true
}

// want notes that a worker of this node waits for a tick. The lock is held.
func (b *bound) want(t tick.Tick) {
	if s := &b.nodes[b.n.self]; s.wanted.Before(t) {
		s.wanted = t
		b.hasten()
	}
}

// forsake ends a worker's wait in vain.
func (b *bound) forsake(w *worker, what string, keys []godwit.Key, cause error) error {
	b.mu.Lock()
	if i := slices.Index(b.waiting, w); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	need := w.need
	b.mu.Unlock()
	select {
	case <-w.granted:
	default:
	}
	behind, peer := b.behind(need)
	e := w.fail(what, keys, fmt.Errorf("waiting for updates before %v: %s: %w", need, behind, cause)).(*godwit.OpError)
	e.Peer = peer
	return e
}

// behind says who holds up those that wait for a tick.
func (b *bound) behind(need tick.Tick) (who string, peer godwit.NodeID) {
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
			if i != int(b.n.self) && b.copies && b.nodes[i].fresh.Before(need) {
				return fmt.Sprintf("node %d has not refreshed the replicas here", i), godwit.NodeID(i)
			}
		}
		return "nobody is behind any more", godwit.NoNode
	}
	id := godwit.WorkerID{Node: godwit.NodeID(last), Local: s.slowest}
	if last == int(b.n.self) {
		s.settled, id.Local = b.clocks.Least()
		s.flying = !s.settled.Before(need)
	}
	if s.flying {
		return fmt.Sprintf("updates of node %d are on their way", last), id.Node
	}
	return fmt.Sprintf("%v is at %v", id, s.settled), id.Node
}

// advanced takes note that a worker went on from a tick.
func (b *bound) advanced(from tick.Tick) {
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
	b.stir()
}

// stir has the pacer look whether there is more to settle or to tell.
func (b *bound) stir() {
	b.n.pacer.bell.Ring()
	preempt.Point()
	if b.urgent.Load() || b.owes() {
		b.n.pacer.bell.Hurry()
	}
}

// owes reports whether somebody waits for more to be settled here than is, and
// the workers are farther.
func (b *bound) owes() bool {
	preempt.Point()
	settled := tick.Tick(b.settled.Load())
	if !settled.Before(tick.Tick(b.wanted.Load())) {
		return false
	}
	least, _ := b.clocks.Least()
	return settled.Before(least)
}

// pressed reports whether somebody waits for what this node has to do.
func (b *bound) pressed() bool { return b != nil && b.urgent.Load() }

// settling reports whether anything that comes may be what settling waits for.
func (b *bound) settling() bool { return b != nil && b.flying.Load() }

// enter has a worker go to the next era, if it is not there already.
func (b *bound) enter(w *worker) {
	if b.broken.KeepEra {
		return
	}
	if from, on := w.clock.Enter(); on {
		b.advanced(from)
	}
}

// advance takes note that a worker went to its next clock.
func (b *bound) advance(w *worker) {
	if from, on := w.clock.Follow(); on {
		b.advanced(from)
	}
}

// leave lets nobody wait for this node's workers any more.
func (b *bound) leave() {
	for _, c := range b.clocks {
		c.Leave()
	}
	b.stir()
}

// heard takes what a peer says of itself.
func (b *bound) heard(from godwit.NodeID, r *wire.Record) {
	b.mu.Lock()
	s := &b.nodes[from]
	s.settled = tick.Max(s.settled, tick.Tick(r.Op))
	s.fresh = tick.Max(s.fresh, tick.Tick(r.Seq))
	s.wanted = tick.Max(s.wanted, tick.Tick(r.Version))
	s.slowest, s.flying = int(r.Key>>1), r.Key&1 != 0
	b.moved()
	served := b.someDue()
	b.mu.Unlock()
	b.stir()
	if served {
		b.n.pacer.bell.Hurry()
	}
}

// all returns the least tick that all nodes have settled. The lock is held.
func (b *bound) all() tick.Tick {
	least := b.nodes[0].settled
	for i := range b.nodes {
		least = tick.Min(least, b.nodes[i].settled)
	}
	return least
}

// moved finds the horizon anew, and lets go on whom that serves. The lock is held.
func (b *bound) moved() {
	h := b.all()
	if b.copies && !b.broken.AnyCopy {
		for i := range b.nodes {
			if i != int(b.n.self) {
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
func (b *bound) grant(reached func(need tick.Tick) bool) {
	b.waiting = slices.DeleteFunc(b.waiting, func(w *worker) bool {
		if !reached(w.need) {
			return false
		}
		select {
		case w.granted <- struct{}{}:
		default:
		}
		return true
	})
}

// hasten finds out whether somebody waits for this node. The lock is held.
func (b *bound) hasten() {
	own := &b.nodes[b.n.self]
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

// resting says what waits for a tick; nil if nothing does.
func (b *bound) resting() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting)+len(b.parked)+len(b.changes) > 0 {
		return fmt.Errorf("%d workers and %d requests wait for updates of others, %d changes of bounds for an answer", len(b.waiting), len(b.parked), len(b.changes))
	}
	return nil
}
