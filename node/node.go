// Package node is one process of a run: it holds rows, runs workers and talks to the other
// nodes. It contains no rule of the protocol.
//
// A program begins with [Local], which starts several nodes in this process, or
// [Start], which starts one that finds the others by a [Config], and hands each of
// [Node.Workers] to a goroutine.
//
// Workers are goroutines of the training program and reach the rows by shared memory: an
// access to a key that is owned or replicated here takes the lock of the key's shard, or
// none, copies or adds, and is done. For everything else records go to the queue of a
// peer, whose writer goroutine sends them; a reader goroutine for each peer hands what
// arrives to the shards. One goroutine acts on intents, one runs the sync rounds. Where a table
// bounds the staleness of its reads, they wait for what the nodes tell each other of their
// workers' clocks.
//
// # Rooms
//
// A [Node] is composed of rooms, the packages under node/internal, each of which says in its
// package comment what it owns and what it never does. This package makes them, connects them,
// starts their goroutines, and ends them. docs/architecture.md has the ways of calls and
// records through them.
//
// # Locks
//
// Locks are taken in this order: a shard; a worker's scans; the queue to a peer; the spare memory
// of frames, the bound or the WaitSync calls, one of them; a worker's operations, and one of these.
// A sender that keeps a queue for several records tries shards only, and lets go of it before it
// waits for one, looks at another queue, or asks scans. All other locks of rooms are taken alone: under them
// nothing else is locked, and nothing waited for.
package node

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/packing"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/store/arena"
	"github.com/godwit-ps/godwit/node/internal/ahead"
	"github.com/godwit-ps/godwit/node/internal/ask"
	"github.com/godwit-ps/godwit/node/internal/cut"
	"github.com/godwit-ps/godwit/node/internal/filtering"
	"github.com/godwit-ps/godwit/node/internal/hot"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/liveness"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/planner"
	"github.com/godwit-ps/godwit/node/internal/receive"
	"github.com/godwit-ps/godwit/node/internal/round"
	"github.com/godwit-ps/godwit/node/internal/run"
	"github.com/godwit-ps/godwit/node/internal/scan"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/staleness"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/node/internal/watch"
	"github.com/godwit-ps/godwit/node/internal/worker"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/transport"
)

// A Node is one process of a run: the rooms that it is made of, lowest first.
type Node struct {
	cfg      Config
	self     godwit.NodeID
	host     *host.Host
	budget   *host.Budget
	links    *link.Links
	proto    *protocol.Config
	arena    arena.Arena
	rows     *shards.Set
	ops      *operation.Tables
	planner  *planner.Planner
	bound    *staleness.Bound // nil if no table bounds staleness
	loop     *round.Loop
	hot      *hot.Set // of a policy that knows hot keys; else nil
	run      *run.Run
	cuts     *cut.Cuts
	pulse    *liveness.Pulse
	workers  *worker.Group
	receiver *receive.Receiver
	in       []*receive.Inbound // of a simulated node, by peer
	closed   sync.Once
}

// Start brings a node up: it connects to the other members of the session and
// starts the goroutines. ctx bounds the start only; it should have a deadline, as
// members that cannot reach each other are tried again until then. The start ends
// with the session, too. An error of this node's own is told to the session.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	members := cfg.Session.Members()
	n := &Node{cfg: cfg, self: cfg.Session.Self(),
		host: host.New(cfg.world()), budget: host.NewBudget(cfg.Workers, len(members))}
	if cfg.Flight != nil {
		n.host.Record(cfg.Flight.Write)
	}
	if cfg.Virtual == nil { // a simulation recovers by itself
		n.host.OnPanic(func(err error) {
			self := &coord.MemberError{Member: members[n.self], Err: fmt.Errorf("%w: %w", godwit.ErrPeerLost, err)} // the process is about to end
			cfg.Session.Fail(self)
		})
	}
	if err := n.build(); err != nil {
		return nil, errors.Join(err, n.arena.Free())
	}
	switch {
	case cfg.Virtual != nil:
		n.imagine()
	case len(members) > 1:
		conns, err := n.run.Meet(ctx, run.Mesh{Network: cfg.Network, Listener: cfg.Listener,
			Run: cfg.Run, Fingerprint: cfg.short(), Secret: cfg.Session.Secret()})
		if err != nil {
			return nil, errors.Join(err, n.arena.Free())
		}
		n.connect(conns)
	}
	n.host.Go(n.run.Watch)
	n.host.Go(n.planner.Run)
	n.host.Go(n.loop.Run)
	n.host.Go(n.cuts.Run)
	if len(members) > 1 {
		n.pulse.Start(n.joinTime(ctx))
		n.host.Go(n.watchPeers)
	}
	err := n.hold(ctx, n.everywhere())
	if n.hot.Measures() {
		n.host.Go(n.findHot)
	}
	return n, err
}

// build makes the rooms of the node, lowest first. Nothing goes on in them yet.
func (n *Node) build() error {
	s, limits := n.cfg.Session, n.cfg.limits()
	by, err := packing.Of(n.cfg.Model)
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	bell, ids := host.NewBell(), new(atomic.Uint64)
	n.links = link.New(n.host, n.self, len(s.Members()), s.View(), limits, by, bell)
	n.ops = operation.New(n.cfg.Model, n.self, n.cfg.Workers, limits)
	n.links.Answered = n.ops.Complete
	n.ops.Measure(n.host.Now, n.links.Nodes())
	if v := n.cfg.Virtual; v != nil {
		n.links.Strains = v.Strains
	}
	n.run = run.New(n.host, n.links, s, s.Cause, s.Members())
	n.pulse = liveness.New(n.host, n.links, s.Members(), s.Lease())

	clocks := tick.NewClocks(n.self, n.cfg.Workers, n.cfg.barriers())
	setup := tick.NewSetup(clocks)
	var seen *watch.Watch
	if !n.links.Alone() {
		seen = watch.New(n.cfg.Model, n.host.Now, clocks.Furthest)
	}
	tracer := watch.NewTracer(n.cfg.Trace, n.self, n.host.Now, clocks.Furthest)
	if err := n.makeRows(setup, bell, seen.With(tracer), tracer.Decisions()); err != nil {
		return err
	}
	tracer.Asks(n.proto.Policy, n.proto.Hot)
	var told func() planner.Told
	if tracer != nil {
		told = func() planner.Told { return tracer.Means().Decided }
	}
	n.planner = planner.New(n.host, n.rows, n.links, n.budget, clocks, n.cfg.Eager, told)
	questions, answers := scan.NewQuestions(n.host, n.proto, n.links), scan.NewAnswers(n.proto, n.links, bell, n.run.Broke)
	n.bound = staleness.New(staleness.Config{Host: n.host, Links: n.links, Rows: n.rows, Ops: n.ops, Clocks: clocks, Rounds: bell, IDs: ids, Proto: n.proto,
		Start: tick.First(n.cfg.barriers()), Broken: n.cfg.brokenBound()})
	var first []round.Stage
	if n.bound != nil {
		n.ops.Settled = n.bound.Stir
		first = []round.Stage{n.bound}
	}
	n.loop = round.New(round.Config{Host: n.host, Links: n.links, Rows: n.rows, Clocks: clocks, Setup: setup, Bell: bell, Budget: n.budget, IDs: ids,
		Rate: placement.SyncOf(n.proto.Policy).Rate, Copies: placement.Replicates(n.proto.Policy), First: first, Last: []round.Stage{answers}})
	n.cuts = cut.New(cut.Config{Host: n.host, Links: n.links, Rows: cut.Rows{Host: n.host, Set: n.rows, Proto: n.proto}, Ops: n.ops, Sync: n.loop.Sync, Bounded: n.bound != nil, OneClock: n.cfg.OneClock && n.bound == nil})
	n.receiver = receive.New(receive.Config{Host: n.host, Links: n.links, Rows: n.rows, Ops: n.ops, Bound: n.bound, Sync: n.loop.Sync, Echoes: n.loop.Echoes,
		Questions: questions, Answers: answers, Asks: ask.New(n.host, n.links, n.run.Fail), Cuts: n.cuts, Pulse: n.pulse, Run: n.run, Leads: n.planner.Leads})
	n.workers, err = worker.New(worker.Config{Host: n.host, Model: n.cfg.Model, Links: n.links, Rows: n.rows, Ops: n.ops, Clocks: clocks, Planner: n.planner, Bound: n.bound, Rounds: n.loop,
		Filters: filtering.New(n.cfg.Model, n.cfg.Seed, placement.FetchesAhead(n.proto.Policy)), Hot: n.hot, Questions: questions, Barrier: n.run.Barrier(n.cfg.Workers, s.Exchange), Cuts: n.cuts, Watch: seen, Trace: tracer, Policy: n.proto.Policy,
		Samplers: n.cfg.Samplers, Seed: n.cfg.Seed, Ahead: ahead.Start{Long: n.cfg.longStep(), Depth: n.cfg.depth()}})
	if err == nil {
		n.cuts.PushAside = n.workers.PushAside
	}
	return err
}

// makeRows makes the shards, and what the protocol is to know.
func (n *Node) makeRows(setup *tick.Setup, bell *host.Bell, tell func(protocol.Event), decided func(protocol.Decision)) error {
	var err error
	if n.proto, err = n.cfg.protocol(); err != nil {
		return err
	}
	if err := checkFits(n.cfg.Model, n.proto.Policy, n.links.Nodes(), n.cfg.memory()); err != nil {
		return err
	}
	if rule, ok := placement.HotRuleOf(n.proto.Policy); ok {
		if n.hot, err = hot.New(n.cfg.Model, rule, n.links.Nodes(), n.cfg.Workers); err != nil {
			return err
		}
		n.proto.Hot = n.hot.Has
	}
	n.proto.SettingUp, n.proto.Misplaced, n.proto.CutShort = setup.Going, n.misplaced, func() { n.cuts.Short() }
	n.proto.Tell, n.proto.Decided = tell, decided
	n.proto.CutFull = func(full bool) { n.cuts.Full(full) }
	n.arena.Short, n.proto.RowsFull, n.proto.SidesFull = n.outOfMemory, n.outOfRows, n.outOfSides
	alloc := n.arena.Alloc
	if n.cfg.Virtual != nil {
		alloc = store.HeapAlloc // many small nodes that come and go
	} else if err := n.arena.Reserve(n.proto.IndexBytes()); err != nil {
		return n.noMemory(0, err)
	}
	n.rows, err = shards.New(n.proto, bytesOf(n.cfg.Model), alloc, bell)
	return err
}

func (n *Node) connect(conns map[godwit.NodeID]transport.Conn) {
	for id, c := range conns {
		n.links.Connect(id, c)
	}
	for id, c := range conns {
		n.host.Go(func() {
			if err := n.links.To(id).Write(n.host); err != nil {
				n.run.Lost(id, err)
			}
		})
		n.host.Go(func() {
			if err := n.receiver.Inbound(id).Serve(c); err != nil {
				n.run.Lost(id, err)
			}
		})
	}
}

// imagine makes the queues to the other nodes of a simulation.
func (n *Node) imagine() {
	n.in = make([]*receive.Inbound, n.links.Nodes())
	if started := n.cfg.Virtual.Started; started != nil {
		started(simulated{n})
	}
	for i := range n.links.Nodes() {
		if to := godwit.NodeID(i); to != n.self {
			n.links.Imagine(to, func() { n.cfg.Virtual.Flush(to) })
			n.in[i] = n.receiver.Inbound(to)
		}
	}
}

// everywhere returns the keys that the policy wants everywhere from the start.
func (n *Node) everywhere() iter.Seq[godwit.Key] {
	switch p := n.proto.Policy; {
	case p.Everywhere(false):
		return func(yield func(godwit.Key) bool) {
			for k := godwit.Key(0); n.cfg.Model.Has(k) && yield(k); k++ {
			}
		}
	case n.hot != nil && p.Everywhere(true):
		return slices.Values(n.hot.Keys())
	}
	return func(func(godwit.Key) bool) {}
}

// findHot finds the keys that are hot, where the tables do not tell.
func (n *Node) findHot() {
	s := n.cfg.Session
	err := n.hot.Find(n.host, hot.Calls{Used: n.proto.UsedLen, Exchange: s.Exchange, Hold: n.hold})
	if err != nil && n.host.Life().Err() == nil && s.Err() == nil {
		n.host.Fail(fmt.Errorf("node: agreeing on the hot keys: %w", err))
	}
}

// maxHeld is after how many requests of hold the first of them leave.
const maxHeld = 1024

// hold asks for replicas that stay for the rest of the run.
func (n *Node) hold(ctx context.Context, keys iter.Seq[godwit.Key]) error {
	if n.links.Alone() {
		return nil
	}
	out := n.links.Sender()
	for k := range keys {
		if !n.rows.Hold(&out, k) {
			return n.Err()
		}
		if out.Records >= maxHeld {
			out.Records = 0
			out.Flush()
			if ctx.Err() != nil {
				return fmt.Errorf("node: asking for replicas: %w", n.host.Late(ctx, context.Cause(ctx)))
			}
		}
	}
	out.Flush()
	return nil
}

// Worker returns worker i of this node. It belongs to one goroutine.
func (n *Node) Worker(i int) godwit.Worker { return n.workers.Of(i) }

// Workers returns all workers of this node.
func (n *Node) Workers() []godwit.Worker {
	ws := make([]godwit.Worker, n.cfg.Workers)
	for i := range ws {
		ws[i] = n.workers.Of(i)
	}
	return ws
}

// Done is closed when the run is over for this node: it failed or was closed.
func (n *Node) Done() <-chan struct{} { return n.host.Done() }

// Err is nil before Done, and says why after it.
func (n *Node) Err() error { return n.host.Err() }

// Home returns the home of a key: the node that makes its first row, and knows its owner
// as long as the run lasts. The key must be the model's.
func (n *Node) Home(k godwit.Key) godwit.NodeID { return n.proto.Homes.Home(k) }

// Intents returns how many keys the intents of the node's workers hold that have not
// ended: each once a worker if an intent for it has begun, and else once an intent. Any goroutine may ask.
func (n *Node) Intents() (keys int64) { return n.planner.Held() }

// joinTime is for how long other nodes may still be about to connect to each other when
// this node's connections are there.
func (n *Node) joinTime(ctx context.Context) time.Duration {
	if n.cfg.Virtual != nil {
		return 0
	}
	if at, ok := ctx.Deadline(); ok {
		return time.Until(at)
	}
	return coord.DefaultJoin
}

// watchPeers ends the run when nodes do not reach each other.
func (n *Node) watchPeers() {
	if v := n.pulse.Run(n.run.Over()); v != nil {
		n.run.Split(v)
	}
}

// misplaced ends the run because of a policy that decides what cannot be. It is
// called under a shard's lock.
func (n *Node) misplaced(err error) {
	if n.Err() == nil {
		n.run.Fail(err)
	}
}

// Close ends the node. If the run is well, it first waits (up to ctx) until all
// other nodes close too, so that nobody misses one who still works. Workers
// that wait, and whatever they are asked for later, get godwit.ErrClosed.
func (n *Node) Close(ctx context.Context) error {
	var err error
	n.closed.Do(func() {
		if n.bound != nil {
			n.bound.Leave()
		}
		if n.Err() == nil && !n.links.Alone() {
			err = n.workers.Flush(ctx)
			if e := n.run.Leave(ctx, n.cfg.Session.Barrier, n.cfg.Session.Lease()); err == nil {
				err = n.host.Late(ctx, e)
			}
		}
		n.run.Close()
		n.links.Close()
		n.host.Join()
		n.rows.Close()
		if e := n.arena.Free(); err == nil {
			err = e
		}
	})
	return err
}

// SetStaleness changes the bound on the staleness of a table's reads, on all
// nodes, also while workers wait for the old one. At this node it holds for
// reads that begin after the call did, at another one from when it hears of it;
// when SetStaleness returns nil, it holds everywhere. Eventual is a bound, too.
// Of changes by several callers at a time, all nodes end with the same.
//
// A table that the model gives no bound cannot get one while the run lasts
// ([godwit.ErrBound]): nobody has kept account of its updates.
func (n *Node) SetStaleness(ctx context.Context, table int, s godwit.Bound) error {
	if err := n.Err(); err != nil {
		return fmt.Errorf("node: set staleness: %w", err)
	}
	if table < 0 || table >= n.cfg.Model.Tables() {
		return fmt.Errorf("node: set staleness: there is no table %d, the model has %d", table, n.cfg.Model.Tables())
	}
	if clocks, _ := s.Clocks(); clocks < -1 {
		return fmt.Errorf("node: set staleness of table %q: the bound is out of range, want 0 … %d", n.cfg.Model.Table(table).Name, godwit.MaxBound)
	}
	if n.cfg.Model.Table(table).Staleness == godwit.Eventual {
		return fmt.Errorf("node: set staleness of table %q: %w: the model must give the table one from the start, be it far", n.cfg.Model.Table(table).Name, godwit.ErrBound)
	}
	return n.bound.Set(ctx, table, s)
}
