package node

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/coord"
	cmem "github.com/godwit-ps/godwit/coord/mem"
)

// A worker's deadline is its own: the last of its node to come to a barrier does
// not end the others' wait with it.
func TestADeadlineInABarrierIsOneWorkersOwn(t *testing.T) {
	c := local(t, 2, Config{Model: lengths(t), Workers: 2})
	ctx := background(t)
	patient := make(chan error, 1)
	go func() { patient <- c.Nodes[0].Worker(0).Barrier(ctx) }()
	b := &c.Nodes[0].barrier
	eventually(t, "worker 0.0 waits", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.left == 1
	})
	hasty, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	for range 3 { // it has arrived all the same, and may come again
		err := c.Nodes[0].Worker(1).Barrier(hasty)
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
		go func() { last <- c.Nodes[1].Worker(i).Barrier(ctx) }()
	}
	must(t, c.Nodes[0].Worker(1).Barrier(ctx))
	must(t, <-patient)
	must(t, <-last)
	must(t, <-last)
}

// failing is a session whose barriers of workers fail.
type failing struct {
	coord.Session
	err   error
	calls *atomic.Int32
}

func (f failing) Barrier(ctx context.Context, name string) error {
	if name != "workers" {
		return f.Session.Barrier(ctx, name)
	}
	f.calls.Add(1)
	return f.err
}

func TestABarrierThatFailsAtTheCoordinatorFailsForEveryWorker(t *testing.T) {
	ctx := background(t)
	hub, err := cmem.New(coord.Config{Run: "test", Nodes: 2})
	must(t, err)
	broken := failing{err: errors.New("the coordinator is on holiday"), calls: new(atomic.Int32)}
	nodes, started := make([]*Node, 2), make(chan error, 2)
	for range nodes {
		go func() {
			nw, l, err := overTCP(0)
			if err != nil {
				started <- err
				return
			}
			defer l.Close()
			s, err := hub.Join(ctx, l.Addr())
			if err != nil {
				started <- err
				return
			}
			f := broken
			f.Session = s
			nodes[s.Self()], err = Start(ctx, Config{Model: lengths(t), Workers: 3, Session: f, Run: "test", Network: nw, Listener: l})
			started <- err
		}()
	}
	must(t, <-started)
	must(t, <-started)
	t.Cleanup(func() { closeAll(t, &Cluster{Nodes: nodes, Hub: hub}) })
	got := make(chan error, 3)
	for _, w := range nodes[0].Workers() {
		go func() { got <- w.Barrier(ctx) }()
	}
	for range 3 {
		if err := <-got; !errors.Is(err, broken.err) {
			t.Errorf("a worker's barrier returns %v, want %v", err, broken.err)
		}
	}
	if n := broken.calls.Load(); n != 1 {
		t.Errorf("the coordinator was asked %d times, want once for the node", n)
	}
}
