package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/node/internal/ahead"
	"github.com/godwit-ps/godwit/node/internal/cut"
	"github.com/godwit-ps/godwit/node/internal/filtering"
	"github.com/godwit-ps/godwit/node/internal/hot"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/planner"
	"github.com/godwit-ps/godwit/node/internal/round"
	"github.com/godwit-ps/godwit/node/internal/run"
	"github.com/godwit-ps/godwit/node/internal/samplers"
	"github.com/godwit-ps/godwit/node/internal/scan"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/staleness"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/node/internal/watch"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
)

// A Group is the workers of a node.
type Group struct {
	Config
	workers []*Worker
	closer  *Worker // what a node that is about to be closed pushes by
	saver   *Worker // … and what it pushes for a cut by
	windows []int64 // by table: clocks of its window, or unlimited; nil if no table has one
	onRead  bool    // the policy asks for what is read, and not for what is announced,
	stays   int64   // … for so many clocks after the read
}

// A Config says what the workers of a node share.
type Config struct {
	Host      *host.Host
	Model     *godwit.Model
	Links     *link.Links
	Rows      *shards.Set
	Ops       *operation.Tables
	Clocks    tick.Clocks // of the workers
	Planner   *planner.Planner
	Bound     *staleness.Bound // nil if no table bounds staleness
	Rounds    *round.Loop
	Filters   *filtering.Filters
	Hot       *hot.Set // of a policy that knows hot keys; else nil
	Questions *scan.Questions
	Barrier   *run.Barrier
	Cuts      *cut.Cuts
	Watch     *watch.Watch  // nil: the node is alone
	Trace     *watch.Tracer // nil: no key is traced
	Policy    placement.Policy
	Samplers  []sampling.Spec // by their index in PrepareSample
	Seed      uint64          // of the samplers
	Ahead     ahead.Start     // how workers begin to fetch ahead, under a policy that does
}

// New returns the workers of a node, one a clock.
func New(c Config) (*Group, error) {
	g := &Group{Config: c, windows: staleness.WindowsOf(c.Model)}
	g.stays, g.onRead = placement.OnRead(c.Policy)
	g.onRead = g.onRead && !c.Links.Alone()
	for i, clock := range c.Clocks {
		w := g.worker(i, clock)
		w.intents = c.Planner.Of(i)
		if placement.Learns(c.Policy) && !c.Links.Alone() {
			t := c.Rows.Teacher(c.Links.Nodes())
			w.teacher = &t
		}
		if placement.FetchesAhead(c.Policy) && !c.Links.Alone() {
			w.fetcher.Begin(ahead.Config{Host: c.Host, Rows: c.Rows, Ops: w.ops, Intents: w.intents, Clock: clock, Model: c.Model, Bounded: c.Bound != nil, Long: int64(g.Ahead.Long), Depth: g.Ahead.Depth}, w)
		}
		w.tally = c.Trace.Tally()
		w.scans = c.Questions.Worker(w.id, &w.out)
		var err error
		if w.samples, err = samplers.New(c.Samplers, c.Model, c.Seed, c.Seed+uint64(w.id.Node)<<32+uint64(w.id.Local)+1); err != nil {
			return nil, err
		}
		c.Cuts.Join(&w.party, w.id, clock, w.cross)
		w.inside, w.parked = true, true
		g.workers = append(g.workers, w)
	}
	g.closer, g.saver = g.worker(len(c.Clocks), new(tick.Clock)), g.worker(len(c.Clocks)+1, new(tick.Clock))
	for _, w := range []*Worker{g.closer, g.saver} {
		w.intents, w.req.waits = new(planner.Announcer), true
	}
	return g, nil
}

func (g *Group) worker(i int, clock *tick.Clock) *Worker {
	w := &Worker{g: g, id: godwit.WorkerID{Node: g.Links.Self, Local: i}, clock: clock, out: g.Links.Sender(), rows: g.Rows.Access(), ops: g.Ops.Of(i)}
	w.filters = g.Filters.Pipeline(w.id)
	w.req.send = w.out.Flush
	w.count.direct.Count(g.Model.Tables())
	w.count.sample.Count(g.Model.Tables())
	return w
}

// Of returns a worker, which belongs to one goroutine.
func (g *Group) Of(i int) *Worker { return g.workers[i] }

// Flush pushes what filters left of the workers' pushes when the node is about to be closed,
// while they may still be at work.
func (g *Group) Flush(ctx context.Context) error {
	err := g.closer.pushKept(ctx, "close")
	g.closer.out.Flush()
	if errors.Is(err, godwit.ErrClosed) {
		return nil
	}
	return err
}

// blame names the node that a request for a key went to first, for errors: no node if the key is here by now, or on its way here.
func (g *Group) blame(k godwit.Key) godwit.NodeID {
	if g.Links.Alone() || !g.Model.Has(k) {
		return godwit.NoNode
	}
	if to, ok := g.Rows.Believed(k); ok {
		return to
	}
	return godwit.NoNode
}

// Resting says what the workers have under way; nil if nothing.
func (g *Group) Resting() error {
	for _, w := range g.workers {
		if open := w.ops.Open(); open > 0 {
			return fmt.Errorf("%d operations of %v are open", open, w.id)
		}
		if open := w.scans.Open(); open > 0 {
			return fmt.Errorf("%d parts of scans of %v are open", open, w.id)
		}
	}
	return nil
}

// Counts are what the workers of a node did.
type Counts struct {
	Direct, Sampled watch.Table // keys of pulls and pushes, those of samplers apart

	Tables []watch.Table // … both, by table, and what became of its keys

	Calls, Slow uint64                   // pulls and pushes, and those that could not be served at once
	Waited      time.Duration            // in calls of any kind
	Blocked     uint64                   // calls that waited for a table's bound,
	BlockedTime time.Duration            // … and how long
	Fetched     uint64                   // keys that were fetched ahead of their use
	Late        uint64                   // accesses that were announced and found the key on its way
	Window      int64                    // the widest, in clocks
	Open        int                      // operations that are not over
	Waits       [watch.Causes]watch.Wait // what Waited consists of

	Filters filtering.Counts
	Samples samplers.Counts
}

// Counts takes stock.
func (g *Group) Counts() (s Counts) {
	s.Tables = g.Watch.Tables(g.Model.Tables())
	for _, w := range g.workers {
		c := &w.count
		c.direct.Sum(&s.Direct, s.Tables)
		c.sample.Sum(&s.Sampled, s.Tables)
		s.Calls += c.calls.Load()
		s.Slow += c.slow.Load()
		s.Waited += time.Duration(c.waiting.Load())
		s.Blocked += c.held.Load()
		s.BlockedTime += time.Duration(c.heldNanos.Load())
		s.Fetched += w.fetcher.Fetched()
		s.Late += w.intents.Late()
		s.Window = max(s.Window, w.intents.Window())
		s.Filters.Add(w.filters.Counts())
		s.Samples.Add(w.samples.Counts())
		s.Open += w.ops.Open()
		c.waits.Sum(&s.Waits)
	}
	return s
}
