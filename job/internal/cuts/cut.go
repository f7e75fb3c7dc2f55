package cuts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
)

// A Cut is one of which a Taker takes the rows.
type Cut struct {
	Plan            // as the leader's Taker.Begin returned it
	Began time.Time // at this node
	// Outranked says, when the leader's Taker.Taken is called, that the cut was given up for one at a boundary, by any node.
	Outranked bool

	owner   *Owner
	life    context.Context // the run's
	asked   bool            // Rows was called
	givenUp error           // of Rows, where neither its sink nor its context is why
	warned  bool            // training waits for it, and that was told
	merged  chan struct{}   // closed when the following are there
	state   *train.State
	err     error
}

// Rows hands the rows of the cut that this node has to sink, while training goes on (node.Node.Cut). It is called once at the most.
// When the context ends, the cut is given up at all nodes, as soon as sink would be called next: a node that left the cut before it
// has begun would have the others wait.
func (c *Cut) Rows(ctx context.Context, sink node.Sink) error {
	c.asked = true
	fails := false
	_, err := c.owner.Rows(c.life, c.Number, c.Which, func(table int, rows []uint64, floats []float32) error {
		err := context.Cause(ctx)
		if err == nil {
			err = sink(table, rows, floats)
		}
		fails = fails || err != nil
		return err
	})
	if err != nil && !fails {
		c.givenUp = err
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// State returns what the run had done at the cut. It waits until all workers of all nodes have crossed.
func (c *Cut) State(ctx context.Context) (*train.State, error) {
	select {
	case <-c.merged:
		return c.state, c.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

var errOutranked = errors.New("one at the end of the epoch comes first")

// make makes a cut and has it taken. An error ends the run.
func (o *Owner) make(life context.Context, r round) error {
	ctx, end := context.WithCancelCause(life)
	defer end(nil)
	c := &Cut{Plan: r.Plan, Began: time.Now(), owner: o, life: ctx, merged: make(chan struct{})}
	cutting, cancel := o.begin(ctx, r)
	defer o.end(r, cancel)
	t, err := o.comes(ctx, r)
	if err != nil {
		return err
	}
	var mine Report
	taken := make(chan struct{})
	go func() { // ends with this function, which waits for it
		defer close(taken)
		mine = take(cutting, c, t)
	}()
	state, err := o.position(ctx, r)
	if err == nil && state.End == train.Stopped {
		late := fmt.Errorf("the run is to stop, and after %v it was not written", o.StopWithin)
		defer time.AfterFunc(o.StopWithin, func() { cancel(late) }).Stop()
	}
	c.state, c.err = o.merge(ctx, r, state, err)
	close(c.merged)
	reports, err := o.reports(ctx, c, taken, func() said {
		return said{Report: mine, Outranked: errors.Is(context.Cause(cutting), errOutranked)}
	})
	end(err)
	<-taken
	if err != nil || !o.Leader {
		return err
	}
	return o.conclude(life, c, t, reports)
}

// conclude has the leader's Taker conclude a cut, and warns if training waits for that.
func (o *Owner) conclude(ctx context.Context, c *Cut, t Taker, reports []Report) error {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-time.After(o.patience / 2):
				o.warn(c, nil)
			case <-done:
				return
			}
		}
	})
	defer func() { close(done); watch.Wait() }()
	return t.Taken(ctx, c, reports)
}

// A said is what a node says of its part of a cut.
type said struct {
	Report
	Outranked bool `json:"outranked,omitempty"` // it gave the cut up for one at a boundary
	Late      bool `json:"late,omitempty"`      // it has not taken its part yet, and says more in the next exchange
}

// reports waits until all nodes have taken a cut, or could not, and returns their reports. Mine is called when taken is closed. Nodes tell
// each other who they wait for, so that the leader can warn if training waits too.
func (o *Owner) reports(ctx context.Context, c *Cut, taken <-chan struct{}, mine func() said) ([]Report, error) {
	name := fmt.Sprintf("cuts: reports of cut %d", c.Number)
	for {
		say := said{Late: true}
		select {
		case <-taken:
			say = mine()
		case <-time.After(o.patience / 2):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		all, err := gather[said](ctx, o, name, say)
		if err != nil {
			return nil, err
		}
		var late []int
		reports := make([]Report, len(all))
		for i, s := range all {
			reports[i] = s.Report
			c.Outranked = c.Outranked || s.Outranked
			if s.Late {
				late = append(late, i)
			}
		}
		if len(late) == 0 {
			return reports, nil
		}
		o.warn(c, late)
	}
}

// warn tells, once of a cut, that training has waited long for nodes to take their part of it.
func (o *Owner) warn(c *Cut, late []int) {
	if waits := o.waits(); o.Warn != nil && o.Leader && !c.warned && waits >= o.patience {
		c.warned = true
		o.Warn(c.Number, late, waits)
	}
}

// waits returns how long training has waited at a boundary of this node for cuts to end; 0: it does not wait.
func (o *Owner) waits() time.Duration {
	o.mu.Lock()
	b := o.boundaries[o.calls]
	o.mu.Unlock()
	if b == nil {
		return 0
	}
	select {
	case <-b.crossed:
		return 0
	default:
	}
	select {
	case <-b.called:
		return time.Since(b.since)
	default:
		return 0
	}
}

// comes waits until this node is at the boundary of a cut, and returns who takes it.
func (o *Owner) comes(ctx context.Context, r round) (Taker, error) {
	if r.Boundary > 0 {
		select {
		case <-o.boundary(r.Boundary).called:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return o.taker(r.Boundary), nil
}

// begin returns the context of a cut. One that is at no boundary ends when it is given up for one that is.
func (o *Owner) begin(ctx context.Context, r round) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Boundary == 0 {
		o.giveUp = func() { cancel(errOutranked) }
		if o.boundaries[o.calls] != nil {
			o.giveUp() // training waits at one
		}
	}
	return ctx, cancel
}

func (o *Owner) end(r round, cancel context.CancelCauseFunc) {
	cancel(nil)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.giveUp = nil
	delete(o.crossings, r.Number)
	delete(o.boundaries, r.Boundary)
}

// take has the Taker take the cut. If it does not come to the rows, the cut is given up, since other nodes wait for it.
func take(ctx context.Context, c *Cut, t Taker) (r Report) {
	report, err := t.Take(ctx, c)
	if !c.asked {
		if cerr := c.Rows(c.life, func(int, []uint64, []float32) error { return err }); err == nil {
			err = cerr
		}
	}
	if r.Report = report; err != nil {
		r.Err, r.Follows = err.Error(), c.givenUp != nil && errors.Is(err, c.givenUp)
	}
	return r
}

// position waits until the workers of this node have crossed, and returns where they were. Training goes on when it returns.
func (o *Owner) position(ctx context.Context, r round) (*train.State, error) {
	x := o.crossing(r.Number)
	if r.Boundary == 0 {
		select {
		case <-x.done:
			return x.state, x.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	b := o.boundary(r.Boundary)
	select {
	case <-x.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	close(b.crossed)
	return b.state, nil
}

// A place is how far a node has come with training: what another one must know of its state.
type place struct {
	Epochs   int               `json:"epochs"` // that were trained before
	Position schedule.Position `json:"position"`
	Err      string            `json:"err,omitempty"`
}

// merge puts together how far all nodes have come.
func (o *Owner) merge(ctx context.Context, r round, s *train.State, serr error) (*train.State, error) {
	var mine place
	if serr != nil {
		mine.Err = serr.Error()
	} else {
		mine.Epochs, mine.Position = s.Epochs, s.Position
	}
	places, err := gather[place](ctx, o, fmt.Sprintf("cuts: positions at cut %d", r.Number), mine)
	if err != nil {
		return nil, err
	}
	least := math.MaxInt
	for i, p := range places {
		if p.Err != "" {
			return nil, fmt.Errorf("node %d: %s", i, p.Err)
		}
		least = min(least, p.Epochs)
	}
	if serr != nil {
		return nil, serr
	}
	return merged(s, places, least)
}

// merged is the state of a run whose nodes are at some places, by that of one of them.
func merged(s *train.State, places []place, least int) (*train.State, error) {
	if least < 0 || least > s.Epochs {
		return nil, fmt.Errorf("cuts: a node has trained %d epochs, this one %d", least, s.Epochs)
	}
	mine := s.Until(least)
	mine.Position = schedule.Position{}
	all := []*train.State{mine} // of equal ones MergeStates takes the first
	for _, p := range places {
		all = append(all, &train.State{Epochs: p.Epochs, Position: p.Position})
	}
	m, err := train.MergeStates(all...)
	if err == nil {
		m.End = s.End
	}
	return m, err
}

// gather exchanges what all nodes say.
func gather[T any](ctx context.Context, o *Owner, name string, mine T) ([]T, error) {
	b, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	texts, err := o.Exchange(ctx, name, b)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for i, b := range texts {
		if err := json.Unmarshal(b, &all[i]); err != nil {
			return nil, fmt.Errorf("%s: what node %d says cannot be read: %w", name, i, err)
		}
	}
	return all, nil
}
