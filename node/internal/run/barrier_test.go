package run

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
)

// barriers returns the barrier of each node of a run, with so many workers.
func barriers(t *testing.T, nodes, workers int) []*Barrier {
	t.Helper()
	out := make([]*Barrier, nodes)
	for i, s := range sessions(t, nodes) {
		out[i] = runOf(t, s).Barrier(workers, s.Exchange)
	}
	return out
}

// missing waits until so many workers of a node are missing at its barrier.
func missing(t *testing.T, b *Barrier, n int) {
	t.Helper()
	roomtest.Eventually(t, "the others of a node wait", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.left == n
	})
}

// A worker's deadline is its own: the last of its node to come to a barrier does
// not end the others' wait with it.
func TestADeadlineInABarrierIsOneWorkersOwn(t *testing.T) {
	bs := barriers(t, 2, 2)
	ctx := roomtest.Background(t)
	patient := make(chan error, 1)
	go func() { patient <- bs[0].Wait(ctx, 0, "barrier") }()
	missing(t, bs[0], 1)
	hasty, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	for range 3 { // it has arrived all the same, and may come again
		err := bs[0].Wait(hasty, 1, "barrier")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "node 1") {
			t.Fatalf("a barrier that node 1 does not come to: %v, want a deadline that names it", err)
		}
		if n := strings.Count(err.Error(), context.DeadlineExceeded.Error()); n != 1 {
			t.Errorf("the error says %d times that the deadline is over: %v", n, err)
		}
	}
	select {
	case err := <-patient:
		t.Fatalf("worker 0.0, which has a longer deadline, gets %v", err)
	default:
	}
	last := make(chan error, 2)
	for i := range 2 {
		go func() { last <- bs[1].Wait(ctx, i, "barrier") }()
	}
	roomtest.Must(t, bs[0].Wait(ctx, 1, "barrier"))
	roomtest.Must(t, <-patient)
	roomtest.Must(t, <-last)
	roomtest.Must(t, <-last)
}

// Who gives up again at once, while the node's call to the coordinator begins anew, hears who is
// missing, too.
func TestWhoGivesUpAtABarrierAgainAndAgainNeverWaits(t *testing.T) {
	bs := barriers(t, 2, 3)
	ctx := roomtest.Background(t)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	all := make(chan error, 6)
	go func() { all <- bs[0].Wait(ctx, 0, "barrier") }()
	missing(t, bs[0], 2)
	for i := range 2 {
		if err := bs[0].Wait(gone, 1+i, "barrier"); !errors.Is(err, context.Canceled) {
			t.Fatalf("a barrier with a context that is over: %v", err)
		}
	}
	hasty := make(chan error, 2)
	for i := range 2 {
		go func() {
			var err error
			for n := 0; n < 5000 && ctx.Err() == nil; n++ {
				if err = bs[0].Wait(gone, 1+i, "barrier"); !errors.Is(err, context.Canceled) {
					break
				}
			}
			hasty <- err
		}()
	}
	for range 2 {
		if err := <-hasty; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "node 1") {
			t.Errorf("a barrier that node 1 does not come to: %v, want that it did not", err)
		}
	}
	for i := range 3 {
		go func() { all <- bs[1].Wait(ctx, i, "barrier") }()
	}
	for i := range 2 {
		go func() { all <- bs[0].Wait(ctx, 1+i, "barrier") }()
	}
	for range cap(all) {
		roomtest.Must(t, <-all)
	}
}

// Who gives up while workers of its own node are missing hears that, and has arrived: its
// next call waits for the same round.
func TestABarrierSaysThatThisNodesWorkersAreMissing(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		bs := barriers(t, nodes, 2)
		ctx := roomtest.Background(t)
		gone, cancel := context.WithCancelCause(ctx)
		why := errors.New("something better to do")
		cancel(why)
		for range 2 {
			if err := bs[0].Wait(gone, 0, "barrier"); !errors.Is(err, why) || !strings.Contains(err.Error(), "this node's other workers") {
				t.Errorf("%d nodes: a barrier of which worker 0.1 is missing: %v", nodes, err)
			}
		}
		all := make(chan error, 2*nodes)
		for _, b := range bs {
			for i := range 2 {
				go func() { all <- b.Wait(ctx, i, "barrier") }()
			}
		}
		for range cap(all) {
			roomtest.Must(t, <-all)
		}
	}
}

// Workers that meet by different calls hear all of them which ones, wherever they are, and can meet again.
func TestWhoMeetsByAnotherCallIsAnError(t *testing.T) {
	for _, c := range []struct {
		calls [][]string // by node and worker
		says  string
	}{
		{[][]string{{"barrier", "barrier"}, {"sync-all", "sync-all"}}, "node 0 have called barrier, and those of node 1 sync-all"},
		{[][]string{{"sync-all", "sync-all"}, {"sync-all", "barrier"}}, "node 1 have called"},
		{[][]string{{"sync-all", "barrier"}}, "node 0 have called"},
	} {
		bs := barriers(t, len(c.calls), 2)
		for _, again := range []bool{false, true} {
			all := make(chan error, 2*len(bs))
			for id, b := range bs {
				for worker, call := range c.calls[id] {
					if again {
						call = "barrier"
					}
					go func() { all <- b.Wait(roomtest.Background(t), worker, call) }()
				}
			}
			for range cap(all) {
				err := <-all
				if again {
					roomtest.Must(t, err)
				} else if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "barrier") || !strings.Contains(err.Error(), "sync-all") {
					t.Errorf("%v: %v, want that workers of %s", c.calls, err, c.says)
				}
			}
		}
	}
}

func TestABarrierThatFailsAtTheCoordinatorFailsForEveryWorker(t *testing.T) {
	const workers = 3
	var calls atomic.Int32
	broken := errors.New("the coordinator is on holiday")
	b := runOf(t, sessions(t, 2)[0]).Barrier(workers, func(context.Context, string, []byte) ([][]byte, error) {
		calls.Add(1)
		return nil, broken
	})
	got := make(chan error, workers)
	for i := range workers {
		go func() { got <- b.Wait(roomtest.Background(t), i, "barrier") }()
	}
	for range workers {
		if err := <-got; !errors.Is(err, broken) {
			t.Errorf("a worker's barrier returns %v, want %v", err, broken)
		}
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("the coordinator was asked %d times, want once for the node", n)
	}
}

// Who waits at a barrier hears that the run is over, and so does who comes later.
func TestABarrierEndsWithTheRun(t *testing.T) {
	ss := sessions(t, 2)
	r := runOf(t, ss[0])
	b := r.Barrier(1, ss[0].Exchange)
	waits := make(chan error, 1)
	go func() { waits <- b.Wait(context.Background(), 0, "barrier") }()
	why := errors.New("out of cheese")
	r.Fail(why)
	if err := <-waits; !errors.Is(err, why) {
		t.Errorf("who waits gets %v, want %v", err, why)
	}
	if err := b.Wait(context.Background(), 0, "barrier"); !errors.Is(err, why) {
		t.Errorf("who comes later gets %v, want %v", err, why)
	}
}

// A node that is closed has no barriers, even if it is the only one.
func TestABarrierOfANodeThatIsClosedFails(t *testing.T) {
	r := runOf(t, sessions(t, 1)[0])
	b := r.Barrier(1, nil)
	roomtest.Must(t, b.Wait(context.Background(), 0, "barrier"))
	r.host.Fail(godwit.ErrClosed)
	for range 100 {
		if err := b.Wait(context.Background(), 0, "barrier"); !errors.Is(err, godwit.ErrClosed) {
			t.Fatalf("it returns %v, want %v", err, godwit.ErrClosed)
		}
	}
}

// Who comes to a barrier of a run that is over hears of that as operations do, and the node knows it by then: the session's answer may
// come before the word that it has ended.
func TestABarrierOfARunThatIsOverEndsTheRunForTheNode(t *testing.T) {
	ss := sessions(t, 2)
	r := runOf(t, ss[0]) // nobody watches the session
	b := r.Barrier(1, ss[0].Exchange)
	why := errors.New("out of cheese")
	ss[1].Fail(why)
	err := b.Wait(roomtest.Background(t), 0, "barrier")
	var who *coord.MemberError
	if !errors.Is(err, godwit.ErrPeerLost) || !errors.As(err, &who) || who.Member.ID != 1 || !strings.Contains(err.Error(), why.Error()) {
		t.Errorf("the barrier ended with %v, want that node 1 is lost", err)
	}
	if got := r.host.Err(); got == nil || got != err {
		t.Errorf("after that, the node says %v", got)
	}
}
