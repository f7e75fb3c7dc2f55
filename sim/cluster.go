package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/virtual"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/telemetry/trace"
	"github.com/godwit-ps/godwit/train"
)

// A Config says what is simulated.
type Config struct {
	Nodes   int // at least 1
	Workers int // of each node, at least 1
	// Seed decides about everything random: the network, the spread of step
	// times, first values and samplers.
	Seed uint64

	// Model, Policy, Samplers, NoHints and Eager are those of node.Config. A run does
	// not share rules or samplers' distributions with other goroutines' runs
	// unless they are immutable.
	Model    *godwit.Model
	Policy   placement.Policy // nil is placement.Adaptive
	Samplers []sampling.Spec  // by their index in PrepareSample
	NoHints  bool             // do without location hints (for comparison)
	Eager    bool             // act on intents as soon as they are signalled (for comparison)

	// Trace, if set, makes the writer of a node's trace, which should be Plain. Times are virtual. The
	// caller closes it after the cluster.
	Trace func(godwit.NodeID) (*trace.Writer, error)

	Network Network // the zero Network takes no time
	Compute Compute // the zero Compute costs nothing

	// Barriers is how many barriers the workers count as behind them at first
	// (virtual.Options).
	Barriers uint64
	LongStep time.Duration // from which length of their steps on workers fetch ahead; 0: as at a real node
	Depth    int           // for how many steps ahead at first; 0: as at a real node (virtual.Options)
	// Limits are those of the nodes' queues; zero: as of real nodes.
	Limits virtual.Limits
	// Watch looks at the keys of every frame when it was handled: one main copy,
	// epochs that grow, nothing lost, few hops.
	Watch bool
	// Forgets is the share of frames before which their receiver forgets the
	// lists of keys that the sender refers to.
	Forgets float64
	// Strained, if it is not 0, is the share of questions whether bytes bound the way to a peer
	// that are answered with yes, whatever was measured.
	Strained float64
	// Broken switches rules of the protocol off, to see that checks notice.
	Broken protocol.Broken
	// BrokenCut does so with rules of cuts.
	BrokenCut protocol.BrokenCut
	// BrokenBound does so with rules of bounded staleness.
	BrokenBound virtual.BrokenBound
}

// A Result is what a program took. All of it follows from the configuration
// and the program.
type Result struct {
	// Elapsed is virtual: from the start of the program to the end of its last
	// part.
	Elapsed  time.Duration `json:"elapsed_ns"`
	Messages uint64        `json:"messages"` // records handled until everything was at rest
	Frames   uint64        `json:"frames"`   // … that they came in
	Bytes    uint64        `json:"bytes"`    // … and the length of these
	Events   uint64        `json:"events"`   // of the simulation's queue
	// Stats is each node's since the cluster began. Their times are virtual.
	Stats []node.Stats `json:"stats"`
	// Hash stands for every frame since the cluster began: when it was handled,
	// where, and its bytes.
	Hash uint64 `json:"hash"`
}

// Sum returns the stats of all nodes together.
func (r *Result) Sum() (s node.Stats) {
	for _, n := range r.Stats {
		s.Add(n)
	}
	return s
}

// A Cluster is simulated nodes. It belongs to one goroutine; clusters of
// different goroutines are independent.
type Cluster struct {
	cfg   Config
	rng   *rand.Rand
	hosts []*host

	now     int64 // virtual nanoseconds since the start
	active  int64 // when the last thing happened that was not about life alone
	queue   queue
	live    map[*coro]bool
	running *coro // nil: an event
	places  map[place]*gathering
	free    []*frame
	count   wire.Decoder
	plain   []byte                      // memory of a frame that was compressed
	epochs  map[godwit.Key]godwit.Epoch // the greatest of a main copy; if watched

	messages, frames, bytes, events uint64
	hash                            uint64

	err      error // why the simulation ended
	aborting bool
	closed   bool
	stalled  bool    // nothing is under way, and programs wait:
	waits    []error // for this
}

// A host is a node with its interface and its server cores.
type host struct {
	id      godwit.NodeID
	node    *node.Node
	virtual virtual.Node // the same
	session *session
	workers []godwit.Worker
	parked  []*coro

	running int           // functions that the node's Go began
	joined  chan struct{} // if set, closed when there are none left

	sending []bool     // peers to which a frame is under way until it has left
	outFree int64      // when the interface can send the next frame,
	inFree  int64      // and receive the next
	last    []int64    // when the last frame to a peer arrives
	in      [][]*frame // by peer: frames that have come and were not handled, in order
	slow    float64    // how many times as long its computing takes; 0: 1
	cores   []int64    // when each core is free that the server uses
	// computed is for how long its cores were taken since the cluster began, in nanoseconds.
	computed int64
	worked   [2]int64 // … by rounds and planner, by usual.Duty

	listed, watched []wire.Known // lists of each peer, for who counts and who watches records
}

// New starts the nodes and returns when all is at rest: the replicas that the
// policy wants from the start are there. The cluster must be closed.
func New(cfg Config) (*Cluster, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x5157)), live: map[*coro]bool{}, places: map[place]*gathering{}, epochs: map[godwit.Key]godwit.Epoch{}}
	shared := cfg.Compute.cores()
	for i := range cfg.Nodes {
		cores := cfg.Compute.cores()
		if cfg.Compute.Machine {
			cores = shared
		}
		h := &host{id: godwit.NodeID(i), sending: make([]bool, cfg.Nodes), last: make([]int64, cfg.Nodes), in: make([][]*frame, cfg.Nodes),
			listed: make([]wire.Known, cfg.Nodes), watched: make([]wire.Known, cfg.Nodes),
			slow: cfg.Compute.Slow[i], cores: cores}
		h.session = newSession(c, h)
		c.hosts = append(c.hosts, h)
	}
	err := c.play(context.Background(), "start", func(ctx context.Context, h *host) error { return c.start(ctx, h) })
	if err != nil {
		c.abort()
		return nil, err
	}
	return c, nil
}

func (c *Config) check() error {
	switch {
	case c.Nodes < 1 || c.Nodes > godwit.MaxNodes:
		return fmt.Errorf("sim: %d nodes, want 1 … %d", c.Nodes, godwit.MaxNodes)
	case c.Workers < 1:
		return fmt.Errorf("sim: %d workers a node, want at least 1", c.Workers)
	case c.Model == nil:
		return errors.New("sim: no model")
	}
	if err := c.Network.check(c.Nodes); err != nil {
		return err
	}
	return c.Compute.check()
}

func (c *Cluster) start(ctx context.Context, h *host) error {
	cfg := node.Config{
		Model: c.cfg.Model, Policy: c.cfg.Policy, Seed: c.cfg.Seed, Samplers: c.cfg.Samplers, NoHints: c.cfg.NoHints, Eager: c.cfg.Eager,
		Workers: c.cfg.Workers, Session: h.session, Run: "simulated",
		Virtual: &virtual.Options{World: world{c, h}, Started: func(n virtual.Node) { h.virtual = n }, Flush: func(to godwit.NodeID) {
			c.flush(h, to)
		}, Limits: c.cfg.Limits, Broken: c.cfg.Broken, BrokenCut: c.cfg.BrokenCut, BrokenBound: c.cfg.BrokenBound, Barriers: c.cfg.Barriers, LongStep: c.cfg.LongStep, Depth: c.cfg.Depth},
	}
	if c.cfg.Trace != nil {
		var err error
		if cfg.Trace, err = c.cfg.Trace(h.id); err != nil {
			return err
		}
	}
	if c.cfg.Forgets > 0 {
		cfg.Virtual.Forgets = func() bool { return c.rng.Float64() < c.cfg.Forgets }
	}
	if c.cfg.Strained > 0 {
		rng := rand.New(rand.NewPCG(c.cfg.Seed, uint64(h.id)^0x57a1)) // of its own: else runs differ by what is asked
		cfg.Virtual.Strains = func() bool { return rng.Float64() < c.cfg.Strained }
	}
	n, err := node.Start(ctx, cfg)
	if err != nil {
		return err
	}
	h.node = n
	for i, w := range n.Workers() {
		h.workers = append(h.workers, &worker{Worker: w, c: c, h: h, rng: rand.New(rand.NewPCG(c.cfg.Seed, uint64(h.id)<<16|uint64(i)))})
	}
	return nil
}

// Now returns the virtual time since the cluster began. Like Stats, it may be
// called by programs.
func (c *Cluster) Now() time.Duration { return time.Duration(c.now) }

// Node returns a node, for what only its handle offers. Programs of that node
// may call it.
func (c *Cluster) Node(i int) *node.Node { return c.hosts[i].node }

// Stats takes stock of a node.
func (c *Cluster) Stats(node int) node.Stats { return c.hosts[node].node.Stats() }

// Computed returns the virtual processor time that a node, by its number, has used since
// the cluster began: of its workers, and of everything that it does beside them.
func (c *Cluster) Computed(node int) time.Duration { return time.Duration(c.hosts[node].computed) }

// Run runs a program on every worker of every node and returns when all have
// returned and everything is at rest. The first error ends it for all, and the
// cluster: only Close is of use then.
func (c *Cluster) Run(ctx context.Context, program func(ctx context.Context, w godwit.Worker) error) (*Result, error) {
	return c.RunNodes(ctx, func(ctx context.Context, env train.Env) error {
		return env.Each(ctx, func(ctx context.Context, _ int, w godwit.Worker) error { return program(ctx, w) })
	})
}

// RunNodes is Run for a program a node, such as one that calls train.Run with
// env. The program may set env.Progress, and ask Now and Stats there.
func (c *Cluster) RunNodes(ctx context.Context, program func(ctx context.Context, env train.Env) error) (*Result, error) {
	if c.err != nil || c.closed {
		return nil, errors.Join(godwit.ErrClosed, c.err)
	}
	began, before := c.now, Result{Messages: c.messages, Frames: c.frames, Bytes: c.bytes, Events: c.events}
	ended := began
	err := c.play(ctx, "program", func(ctx context.Context, h *host) error {
		err := program(ctx, c.env(h))
		ended = max(ended, c.now)
		return err
	})
	if err != nil {
		return nil, err
	}
	r := &Result{Elapsed: time.Duration(ended - began), Messages: c.messages - before.Messages, Frames: c.frames - before.Frames,
		Bytes: c.bytes - before.Bytes, Events: c.events - before.Events, Hash: c.hash}
	for _, h := range c.hosts {
		r.Stats = append(r.Stats, h.node.Stats())
	}
	return r, nil
}

// env is where a task runs at a node.
func (c *Cluster) env(h *host) train.Env {
	return train.Env{
		Workers: h.workers, Node: int(h.id), Nodes: len(c.hosts), Exchange: h.session.Exchange, Stop: h.session.stopping,
		Ask: func(question []byte, deliver func([]byte)) func(context.Context) error {
			return h.node.Ask(0, question, deliver)
		},
		Serve: h.node.Serve,
		Fork:  func(n int, do func(int)) { c.fork(h, n, do) },
	}
}

// fork runs coroutines and waits for them.
func (c *Cluster) fork(h *host, n int, do func(int)) {
	left := n
	all := make(chan struct{})
	for i := range n {
		c.spawn(h, fmt.Sprintf("part %d at node %d", i, h.id), func() {
			do(i)
			if left--; left == 0 {
				close(all)
			}
		})
	}
	if n > 0 {
		world{c, h}.Wait(all, nil, nil)
	}
}

// play runs something at every node, and events until none is left.
func (c *Cluster) play(ctx context.Context, what string, do func(ctx context.Context, h *host) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	left := len(c.hosts)
	for _, h := range c.hosts {
		c.spawn(h, fmt.Sprintf("%s of node %d", what, h.id), func() {
			if err := do(ctx, h); err != nil {
				c.fail(fmt.Errorf("sim: node %d: %w", h.id, err))
			}
			left--
		})
	}
	err := c.loop(ctx, &left)
	if err == nil && left > 0 {
		err = c.stuck(cancel)
		c.err = err // whatever programs made of it
	}
	if err != nil {
		c.fail(err)
		c.abort()
	}
	return c.err
}

// fail ends the simulation.
func (c *Cluster) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// idleLimit is for how long programs that wait do so while nothing goes on but that
// nodes look whether others live: longer than they need to find one that does not.
const idleLimit = int64(3 * coord.DefaultTTL)

// goesOn reports whether there is anything to come that programs, of which so many
// are left, may wait for.
func (c *Cluster) goesOn(left int) bool {
	q := &c.queue
	return q.urgent > 0 || left > 0 && len(q.events) > 0 && q.events[0].at <= c.active+idleLimit
}

// loop lets events happen until none is left that may be of use to the programs.
func (c *Cluster) loop(ctx context.Context, left *int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	c.active = c.now
	for c.err == nil && c.goesOn(*left) {
		if c.events++; c.events%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e := c.queue.pop()
		c.now = e.at
		if !e.life() {
			c.active = c.now
		}
		if err := c.happen(&e); err != nil {
			return err
		}
	}
	return c.err
}

func (c *Cluster) happen(e *event) error {
	h := c.hosts[e.host]
	switch e.kind {
	case wakes:
		c.wake(e)
	case leaves:
		if to := e.frame.to; c.leave(h, e.frame) {
			c.send(h, to)
			c.settle(h)
		}
	case sends:
		c.send(h, e.peer)
		c.settle(h) // there is room in queues now
	case arrives:
		return c.arrive(h, e.frame)
	case comes:
		return c.come(h, e.frame)
	case handles:
		return c.handled(h, e.frame)
	case tells:
		e.tell()
		c.settle(h)
	}
	return nil
}

// errStalled is why operations of a cluster that stands still are cancelled.
var errStalled = errors.New("nothing is under way")

// stuck cancels what waits for ever, so that it says what that is.
func (c *Cluster) stuck(cancel context.CancelCauseFunc) error {
	c.stalled = true
	cancel(errStalled)
	for _, h := range c.hosts {
		c.settle(h)
	}
	if len(c.waits) > 0 {
		return fmt.Errorf("sim: after %v %w, and programs still wait:\n%w", time.Duration(c.active), errStalled, errors.Join(c.waits...))
	}
	var who []string
	for co := range c.live {
		who = append(who, co.name)
	}
	slices.Sort(who)
	return fmt.Errorf("sim: after %v %w, and these do not end: %s", time.Duration(c.active), errStalled, strings.Join(who, ", "))
}

// abort unwinds all coroutines.
func (c *Cluster) abort() {
	c.aborting = true
	for co := range c.live {
		co.stop()
	}
	clear(c.live)
	c.closed = true
}

// Close ends the nodes as real ones end, and says what was left running. After
// a failure it just lets go of them.
func (c *Cluster) Close() error {
	if c.closed {
		return nil
	}
	err := c.play(context.Background(), "end", func(ctx context.Context, h *host) error { return h.node.Close(ctx) })
	if err == nil && len(c.live) > 0 {
		err = c.stuck(func(error) {})
	}
	c.abort()
	return err
}

// mix takes a frame into the hash.
func (c *Cluster) mix(h *host, f *frame) {
	x := c.hash
	add := func(v uint64) {
		x = (x ^ v) * 0x9e3779b97f4a7c15
		x ^= x >> 29
	}
	add(uint64(c.now))
	add(uint64(h.id)<<16 | uint64(f.from))
	b := f.bytes
	for ; len(b) >= 8; b = b[8:] {
		add(binary.LittleEndian.Uint64(b))
	}
	for _, v := range b {
		add(uint64(v))
	}
	c.hash = x
}
