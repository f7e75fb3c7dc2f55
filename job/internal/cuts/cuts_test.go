package cuts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
)

// A fleet is nodes whose cuts cross at once and hand over a row each.
type fleet struct {
	t      *testing.T
	owners []*Owner
	due    chan time.Time // what Due returns next; it is never due while there is nothing
	ended  sync.WaitGroup

	took  []string // in order
	next  uint64
	fails int           // the node that cannot take; -1: none
	loses int           // the node whose rows end with errLost, whatever its taker does; -1: none
	hold  chan struct{} // rows are handed over when it is closed; nil: at once
	held  chan struct{} // gets a word when a node has crossed
	slow  int           // the only node whose rows are held; -1: all are
	more  bool          // rows are handed over until they are not taken any more
	state func(int) *train.State

	concluded chan struct{} // gets a word when the leader has concluded a cut
}

func newFleet(t *testing.T, nodes int) *fleet {
	f := &fleet{t: t, due: make(chan time.Time, 1), fails: -1, loses: -1, slow: -1, concluded: make(chan struct{}, 8), held: make(chan struct{}, 4*nodes)}
	f.state = func(int) *train.State { return &train.State{} }
	x := traintest.NewExchange(nodes)
	meet := traintest.NewExchange(nodes) // a cut begins when all nodes make it
	for i := range nodes {
		var o *Owner
		o = New(Config{Leader: i == 0, Taker: taker{f, i}, Exchange: x.Of(i), Due: f.dueNext,
			Rows: func(ctx context.Context, number uint64, _ node.Which, sink node.Sink) (s node.CutStats, err error) {
				if _, err := meet.Of(i)(ctx, fmt.Sprint(number), nil); err != nil {
					return s, err
				}
				o.OnCut(number, f.state(i), nil)
				f.held <- struct{}{}
				if f.hold != nil && (f.slow < 0 || f.slow == i) {
					<-f.hold
				}
				end := time.Now().Add(30 * time.Second) // more than enough to be told
				for err = sink(0, []uint64{uint64(i)}, []float32{1}); f.more && err == nil && time.Now().Before(end); err = sink(0, nil, nil) {
					time.Sleep(time.Millisecond)
				}
				if f.loses == i {
					err = errLost
				}
				return s, err
			}})
		f.owners = append(f.owners, o)
		f.ended.Go(func() {
			if err := o.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	return f
}

var errLost = errors.New("another node gave it up")

func (f *fleet) dueNext() time.Time {
	select {
	case at := <-f.due:
		return at
	default:
		return time.Time{}
	}
}

// all calls do for each owner, at once.
func (f *fleet) all(do func(o *Owner) error) {
	f.t.Helper()
	var wg sync.WaitGroup
	for _, o := range f.owners {
		wg.Go(func() {
			if err := do(o); err != nil {
				f.t.Error(err)
			}
		})
	}
	wg.Wait()
}

func (f *fleet) start() { f.all(func(o *Owner) error { o.Start(); return nil }) }

// finish ends the owners and returns what was taken.
func (f *fleet) finish() []string {
	f.all(func(o *Owner) error { return o.Finish(f.t.Context()) })
	f.ended.Wait()
	return f.took
}

type taker struct {
	f    *fleet
	node int
}

func (k taker) Begin() (Plan, error) {
	k.f.next++
	return Plan{Number: k.f.next}, nil
}

func (k taker) Take(ctx context.Context, c *Cut) (json.RawMessage, error) {
	if k.f.fails == k.node {
		return nil, errors.New("disk full")
	}
	rows := 0
	if err := c.Rows(ctx, func(int, []uint64, []float32) error { rows++; return nil }); err != nil {
		return nil, err
	}
	return fmt.Append(nil, rows), nil
}

func (k taker) Taken(ctx context.Context, c *Cut, reports []Report) error {
	s, err := c.State(ctx)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%d: %d epochs, within %d,", c.Number, s.Epochs, s.Within())
	if c.Outranked {
		text += " outranked:"
	}
	for _, r := range reports {
		text += " " + string(r.Report) + r.Err
		if r.Follows {
			text += " (follows)"
		}
	}
	k.f.took = append(k.f.took, text)
	k.f.concluded <- struct{}{}
	return nil
}

// What all nodes have trained is put together, also where some are an epoch ahead.
func TestACutIsTakenByAllNodes(t *testing.T) {
	f := newFleet(t, 3)
	f.state = func(i int) *train.State {
		s := &train.State{Epochs: 4, Losses: make([]train.Loss, 4), Position: schedule.Position{First: 5, Epochs: []schedule.Epoch{{Epoch: 5, Done: []schedule.Run{{From: i, To: i + 1}}}}}}
		if i == 1 {
			s = &train.State{Epochs: 3, Losses: make([]train.Loss, 3), Position: schedule.Position{First: 4, Epochs: []schedule.Epoch{{Epoch: 4, Under: []schedule.Under{{Chunk: 7, Steps: 2}}}}}}
		}
		return s
	}
	f.due <- time.Now()
	f.start()
	<-f.held
	if got := f.finish(); !slices.Equal(got, []string{"1: 3 epochs, within 4, 1 1 1"}) {
		t.Errorf("taken: %q", got)
	}
}

// Training waits for the crossing, and not for what takes the rows.
func TestTrainingGoesOnWhileRowsAreTaken(t *testing.T) {
	f := newFleet(t, 2)
	f.hold = make(chan struct{})
	f.start()
	f.all(func(o *Owner) error { return o.Boundary(t.Context(), &train.State{}, o.Taker) }) // hangs if it waits for the rows
	close(f.hold)
	if got := f.finish(); !slices.Equal(got, []string{"1: 0 epochs, within 0, 1 1"}) {
		t.Errorf("taken: %q", got)
	}
}

// begin has a fleet of two nodes begin a cut that falls due, and returns when its rows are held.
func (f *fleet) begin() {
	f.hold = make(chan struct{})
	f.due <- time.Now()
	f.start()
	<-f.held
	<-f.held
}

func TestACutAtABoundaryComesFirst(t *testing.T) {
	f := newFleet(t, 2)
	f.begin()
	var wg sync.WaitGroup
	wg.Go(func() { f.all(func(o *Owner) error { return o.Boundary(t.Context(), &train.State{}, o.Taker) }) })
	for f.owners[0].at() == 0 { // the leader is at the boundary
		time.Sleep(time.Millisecond)
	}
	close(f.hold)
	wg.Wait()
	got := f.finish()
	if len(got) != 2 || !strings.Contains(got[0], "outranked: "+errOutranked.Error()) || got[1] != "2: 0 epochs, within 0, 1 1" {
		t.Errorf("taken: %q", got)
	}
}

// Who stops a run does not wait for long: what is not saved by then is given up, and the run ends.
func TestACutOfARunThatIsStoppedIsGivenUpInTime(t *testing.T) {
	f := newFleet(t, 2)
	f.more = true // until time is over
	for _, o := range f.owners {
		o.StopWithin = time.Millisecond
	}
	f.start()
	f.all(func(o *Owner) error { return o.Boundary(t.Context(), &train.State{End: train.Stopped}, o.Taker) })
	if got := f.finish(); len(got) != 1 || !strings.Contains(got[0], "after 1ms it was not written") {
		t.Errorf("taken: %q", got)
	}
}

// A node that cannot take rows takes part in the cut all the same, and in the next one.
func TestANodeThatCannotTakeRowsHoldsUpNobody(t *testing.T) {
	for fails := range 2 {
		f := newFleet(t, 2)
		f.fails = fails
		f.start()
		f.all(func(o *Owner) error { return o.Boundary(t.Context(), &train.State{}, o.Taker) })
		f.all(func(o *Owner) error { return o.Boundary(t.Context(), &train.State{}, o.Taker) })
		got := f.finish()
		if len(got) != 2 || !strings.Contains(got[0], "disk full") || !strings.Contains(got[1], "disk full") || strings.Contains(got[0], "follows") {
			t.Errorf("node %d fails; taken: %q", fails, got)
		}
	}
}

// Of a node whose part was given up because of another one, its report says that nothing failed there.
func TestANodeThatFollowsAnotherSaysSo(t *testing.T) {
	for _, fails := range []int{-1, 0} { // this one would have failed by itself as well
		f := newFleet(t, 2)
		f.loses, f.fails = 1, fails
		f.start()
		f.all(func(o *Owner) error { return o.Boundary(t.Context(), &train.State{}, o.Taker) })
		want := "1: 0 epochs, within 0, 1 " + errLost.Error() + " (follows)"
		if fails == 0 {
			want = strings.Replace(want, ", 1 ", ", disk full ", 1)
		}
		if got := f.finish(); !slices.Equal(got, []string{want}) {
			t.Errorf("taken: %q, want %q", got, want)
		}
	}
}

// A cut that falls due after one at a boundary is taken: no boundary comes before it.
func TestACutThatFallsDueAfterABoundaryIsTaken(t *testing.T) {
	f := newFleet(t, 2)
	f.hold = make(chan struct{})
	for _, o := range f.owners {
		o.StopWithin = time.Millisecond // which is for runs that are stopped
	}
	f.start()
	f.all(func(o *Owner) error { return o.Boundary(t.Context(), &train.State{}, o.Taker) })
	f.due <- time.Now()
	time.Sleep(20 * time.Millisecond)
	close(f.hold)
	<-f.concluded
	<-f.concluded
	if got := f.finish(); !slices.Equal(got, []string{"1: 0 epochs, within 0, 1 1", "2: 0 epochs, within 0, 1 1"}) {
		t.Errorf("taken: %q", got)
	}
}

// A run of which nothing was trained ends without a cut.
func TestOwnersEndWhereNothingWasTrained(t *testing.T) {
	if got := newFleet(t, 2).finish(); len(got) != 0 {
		t.Errorf("taken: %q", got)
	}
}

// clueless is a taker that cannot begin.
type clueless struct{ Taker }

var errClueless = errors.New("no number is left")

func (clueless) Begin() (Plan, error) { return Plan{}, errClueless }

// Who waits for cuts hears why there are no more.
func TestAnErrorThatEndsTheCutsEndsTheWaitForThem(t *testing.T) {
	x := traintest.NewExchange(1)
	o := New(Config{Leader: true, Taker: clueless{}, Exchange: x.Of(0), Due: func() time.Time { return time.Time{} }})
	ended := make(chan error)
	go func() { ended <- o.Run(t.Context()) }()
	o.Start()
	if err := o.Boundary(t.Context(), &train.State{}, clueless{}); !errors.Is(err, errClueless) {
		t.Errorf("the boundary says %v", err)
	}
	if err := <-ended; !errors.Is(err, errClueless) {
		t.Errorf("the run of cuts says %v", err)
	}
	if err := o.Finish(t.Context()); !errors.Is(err, errClueless) {
		t.Errorf("the end says %v", err)
	}
}

func (o *Owner) at() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls
}

// Each node that is at a boundary gives up its part of the cut that fell due, also while the leader is not there, and the leader knows why.
func TestEachNodeAtABoundaryGivesItsPartUp(t *testing.T) {
	f := newFleet(t, 2)
	f.begin()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f.owners[1].Boundary(t.Context(), &train.State{}, f.owners[1].Taker); err != nil {
			t.Error(err)
		}
	})
	for f.owners[1].at() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(f.hold)
	<-f.concluded
	if err := f.owners[0].Boundary(t.Context(), &train.State{}, f.owners[0].Taker); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if got := f.finish(); len(got) != 2 || got[0] != "1: 0 epochs, within 0, outranked: 1 "+errOutranked.Error() || got[1] != "2: 0 epochs, within 0, 1 1" {
		t.Errorf("taken: %q", got)
	}
}

// When training waits long for a cut, the leader tells who it waits for, once.
func TestALongWaitAtABoundaryIsTold(t *testing.T) {
	for _, slow := range []int{0, 1} {
		f := newFleet(t, 2)
		f.slow = slow
		told := make(chan []int, 2)
		for _, o := range f.owners {
			o.patience = 20 * time.Millisecond
			o.Warn = func(cut uint64, late []int, waits time.Duration) {
				if cut != 1 || waits < o.patience || !o.Leader {
					t.Errorf("told of cut %d, leader %v, after %v", cut, o.Leader, waits)
				}
				told <- late
			}
		}
		f.begin()
		var wg sync.WaitGroup
		wg.Go(func() { f.all(func(o *Owner) error { return o.Boundary(t.Context(), &train.State{}, o.Taker) }) })
		if late := <-told; !slices.Equal(late, []int{slow}) {
			t.Errorf("training waits for nodes %d, want %d", late, slow)
		}
		close(f.hold)
		wg.Wait()
		if got := f.finish(); len(got) != 2 || len(told) > 0 {
			t.Errorf("taken: %q, and told %d times more", got, len(told))
		}
	}
}
