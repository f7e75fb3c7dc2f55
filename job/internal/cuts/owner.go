package cuts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/train"
)

// stopWithin is how long a cut of a run that was stopped may take, unless a Config says otherwise: who stops it waits for 25 to 30 s before
// they kill it.
const stopWithin = 20 * time.Second

// A Taker takes what cuts save. Its methods are called one at a time, but for Due.
type Taker interface {
	// Begin is called at the leader before a cut. It returns what all nodes must know of it.
	Begin() (Plan, error)
	// Take saves the rows of a cut at this node (Cut.Rows). Report is what the Taker of the leader is to know of it. An error is one of
	// this cut, and the run goes on.
	Take(ctx context.Context, c *Cut) (report json.RawMessage, err error)
	// Taken is called at the leader when all nodes have taken a cut, or could not: it has their reports. An error ends the run.
	Taken(ctx context.Context, c *Cut, reports []Report) error
}

// A Plan is what all nodes must know of a cut.
type Plan struct {
	Number uint64          `json:"number"` // greater than those of all cuts before it
	Which  node.Which      `json:"which"`
	Detail json.RawMessage `json:"detail,omitempty"` // the Taker's own
}

// A Report is what came of a cut at a node.
type Report struct {
	Report json.RawMessage `json:"report,omitempty"`
	Err    string          `json:"err,omitempty"` // why it could not be taken
	// Follows says that nothing failed at this node: Err says that the cut was given up, mostly because of what another one reports.
	Follows bool `json:"follows,omitempty"`
}

// A Config says what an Owner is part of.
type Config struct {
	Leader bool  // one node of the run has it
	Taker  Taker // of cuts that are at no boundary
	// Rows is node.Cut, and Exchange a session's.
	Rows     func(ctx context.Context, number uint64, which node.Which, sink node.Sink) (node.CutStats, error)
	Exchange func(ctx context.Context, name string, payload []byte) ([][]byte, error)
	// Due returns, at the leader, when the next cut is to be made while training goes on; the zero time: never.
	Due func() time.Time
	// StopWithin is how long a cut of a run that was stopped may take; 0: 20 s.
	StopWithin time.Duration
	// Warn is told, at the leader, that training has waited long at a boundary for the cut before it, and which nodes have not taken their part
	// of that; none: the leader's Taker.Taken has not returned. It is called once of a cut. It may be nil.
	Warn func(cut uint64, late []int, waits time.Duration)
}

// patience is how long training waits for a cut until a warning tells of it.
const patience = 10 * time.Second

// An Owner makes the cuts of a node, one after the other. Its Run is a goroutine of its own; training calls Start, OnCut and Boundary.
type Owner struct {
	Config
	started, ended chan struct{}
	err            error // of Run, set before ended is closed
	start          sync.Once
	ask            chan ask      // at the leader: what is to be done next
	patience       time.Duration // the constant, but in tests

	mu         sync.Mutex
	crossings  map[uint64]*crossing
	boundaries map[int]*boundary
	calls      int                // of Boundary
	giveUp     context.CancelFunc // the cut under way, which is not at a boundary; nil: there is none
}

// A round is what the owners of all nodes do next, as the leader says.
type round struct {
	Over     bool `json:"over,omitempty"`     // there are no more
	Boundary int  `json:"boundary,omitempty"` // which call of Boundary the cut is for; 0: none
	Plan
}

// An ask is a wish of the leader's: the end, or a cut, at a boundary or (0) where workers are.
type ask struct {
	over     bool
	boundary int
}

// A crossing is where the workers of this node were when the last of them crossed.
type crossing struct {
	done  chan struct{}
	state *train.State
	err   error
}

// A boundary is a moment at which no worker does anything.
type boundary struct {
	called  chan struct{} // closed when this node is there
	state   *train.State
	taker   Taker         // of the cut
	since   time.Time     // this node is there
	crossed chan struct{} // closed when training may go on
}

// New returns the owner of a node's cuts. Run is to be called.
func New(c Config) *Owner {
	if c.StopWithin == 0 {
		c.StopWithin = stopWithin
	}
	return &Owner{Config: c, started: make(chan struct{}), ended: make(chan struct{}), ask: make(chan ask, 2), patience: patience,
		crossings: map[uint64]*crossing{}, boundaries: map[int]*boundary{}}
}

// Start says that all nodes have begun, and OnCut will be told of all cuts ([train.Env].Started).
func (o *Owner) Start() { o.start.Do(func() { close(o.started) }) }

// OnCut is told where the workers of this node were ([train.Env].OnCut).
func (o *Owner) OnCut(number uint64, s *train.State, err error) {
	x := o.crossing(number)
	x.state, x.err = s, err
	close(x.done)
}

func (o *Owner) crossing(number uint64) *crossing {
	o.mu.Lock()
	defer o.mu.Unlock()
	x := o.crossings[number]
	if x == nil {
		x = &crossing{done: make(chan struct{})}
		o.crossings[number] = x
	}
	return x
}

func (o *Owner) boundary(n int) *boundary {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.boundaries[n]
	if b == nil {
		b = &boundary{called: make(chan struct{}), crossed: make(chan struct{})}
		o.boundaries[n] = b
	}
	return b
}

// Boundary has a cut made of this moment, which a Taker takes. All nodes call it, equally often, while no worker does anything and all of
// them are at rest ([godwit.Cutter]). It returns when the workers of this node have crossed. The state is as
// [train.Env].EpochEnd is told.
func (o *Owner) Boundary(ctx context.Context, s *train.State, t Taker) error {
	o.mu.Lock()
	o.calls++
	n := o.calls
	if o.giveUp != nil {
		o.giveUp()
	}
	o.mu.Unlock()
	b := o.boundary(n)
	b.state, b.taker, b.since = s, t, time.Now()
	close(b.called)
	if o.Leader {
		select {
		case o.ask <- ask{boundary: n}:
		case <-ctx.Done():
		case <-o.ended:
		}
	}
	return o.await(ctx, b.crossed)
}

// await waits until a channel is closed, Run has ended, or the context.
func (o *Owner) await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-o.ended:
		if o.err != nil {
			return o.err
		}
		return errEnded
	}
}

var errEnded = errors.New("cuts: there are no more cuts")

// Finish ends Run when the last cut has ended, at all nodes. All nodes call it, after their last Boundary.
func (o *Owner) Finish(ctx context.Context) error {
	o.Start() // where nothing was trained
	if o.Leader {
		select {
		case o.ask <- ask{over: true}:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.ended:
		}
	}
	select {
	case <-o.ended:
		return o.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Run makes cuts until Finish, or the context ends. An error is one that ends the run.
func (o *Owner) Run(ctx context.Context) error {
	defer close(o.ended)
	o.err = o.run(ctx)
	return o.err
}

func (o *Owner) run(ctx context.Context) error {
	select {
	case <-o.started:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for i := 1; ; i++ {
		r, err := o.meet(ctx, i)
		if err != nil || r.Over {
			return err
		}
		if err := o.make(ctx, r); err != nil {
			return err
		}
	}
}

// meet waits for the next round.
func (o *Owner) meet(ctx context.Context, i int) (r round, err error) {
	var mine []byte
	if o.Leader {
		if r, err = o.next(ctx); err != nil {
			return r, err
		}
		if mine, err = json.Marshal(r); err != nil {
			return r, err
		}
	}
	all, err := o.Exchange(ctx, fmt.Sprintf("cuts: round %d", i), mine)
	if err != nil {
		return r, err
	}
	for node, b := range all {
		if len(b) == 0 {
			continue // only the leader says something
		}
		if err := json.Unmarshal(b, &r); err != nil {
			return r, fmt.Errorf("cuts: what node %d says of the next cut cannot be read: %w", node, err)
		}
		return r, nil
	}
	return r, errors.New("cuts: no node leads")
}

// next waits, at the leader, until a cut is to be made.
func (o *Owner) next(ctx context.Context) (r round, err error) {
	var due <-chan time.Time
	if at := o.Due(); !at.IsZero() {
		t := time.NewTimer(time.Until(at))
		defer t.Stop()
		due = t.C
	}
	select {
	case a := <-o.ask:
		r.Over, r.Boundary = a.over, a.boundary
	case <-due:
	case <-ctx.Done():
		return r, context.Cause(ctx)
	}
	if !r.Over {
		r.Plan, err = o.taker(r.Boundary).Begin()
	}
	return r, err
}

// taker returns who takes the cut at a boundary at which this node is, or (0) at none.
func (o *Owner) taker(boundary int) Taker {
	if boundary == 0 {
		return o.Taker
	}
	return o.boundary(boundary).taker
}
