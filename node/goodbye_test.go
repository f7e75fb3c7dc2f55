package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// A late session hears that a barrier is complete only when somebody ends its
// wait.
type late struct{ coord.Session }

func (l late) Barrier(ctx context.Context, name string) error {
	if err := l.Session.Barrier(ctx, name); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// Whoever is told late that all nodes have come to the end is told by those who
// know already.
func TestALateAnswerOfTheCoordinatorDoesNotFailTheEnd(t *testing.T) {
	const nodes = 4
	for net, place := range map[string]places{"mem": newGate().place, "tcp": overTCP} {
		for punctual := range godwit.NodeID(nodes) {
			t.Run(fmt.Sprintf("%s/only node %d in time", net, punctual), func(t *testing.T) {
				noLeak(t, func() {
					c := clusterOf(t, nodes, Config{Model: lengths(t), Workers: 1}, place, coord.Config{}, func(s coord.Session) coord.Session {
						if s.Self() == punctual {
							return s
						}
						return late{s}
					})
					each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
						keys := some(rng, w.Model(), 20)
						return w.Push(ctx, keys, valuesOf(w.Model(), keys))
					})
					began := time.Now()
					closeAll(t, c)
					t.Logf("the nodes took %v to close", time.Since(began))
				})
			})
		}
	}
}

// A quietSession keeps to itself that its node failed, as a process that was
// killed.
type quietSession struct{ coord.Session }

// A leavingSession says when its node has come to the end.
type leavingSession struct {
	coord.Session
	here chan<- struct{}
}

func (l leavingSession) Barrier(ctx context.Context, name string) error {
	if name == "close node" {
		l.here <- struct{}{}
	}
	return l.Session.Barrier(ctx, name)
}

func (quietSession) Fail(error) {}

func TestANodeThatDiesWhileOthersWaitForTheEndIsNamed(t *testing.T) {
	const victim = 2
	here := make(chan struct{}, victim)
	c := clusterOf(t, 3, Config{Model: lengths(t), Workers: 1}, overTCP, coord.Config{}, func(s coord.Session) coord.Session {
		if s.Self() == victim {
			return quietSession{s}
		}
		return leavingSession{s, here}
	})
	ctx := background(t)
	var ends sync.WaitGroup
	errs := make([]error, victim)
	for i, n := range c.Nodes[:victim] {
		ends.Go(func() { errs[i] = n.Close(ctx) })
		<-here
	}
	c.Nodes[victim].links.Close()
	ends.Wait()
	<-c.Nodes[victim].host.Done() // it, too, hears that its connections have ended: closed before, it would wait for the others
	for i, err := range errs {
		if !errors.Is(err, godwit.ErrPeerLost) && !errors.Is(err, coord.ErrFailed) || !strings.Contains(err.Error(), "node 2") {
			t.Errorf("node %d closed with %v, want that node 2 is lost", i, err)
		}
	}
	c.Hub.Kill(victim)
}

// Nodes that close with pushes under way lose nobody.
func TestNodesThatCloseWithPushesUnderWayLoseNobody(t *testing.T) {
	for range 20 * *scale {
		c := clusterOf(t, 3, Config{Model: model(t, 100, 1), Workers: 1}, overTCP, coord.Config{}, func(s coord.Session) coord.Session { return s })
		ctx := background(t)
		there := homedAt(t, c.Nodes[0], 1, 20)
		for range 5 {
			_, err := c.Nodes[0].Worker(0).PushAsync(ctx, there, make([]float32, len(there)))
			must(t, err)
		}
		closeAll(t, c)
		for _, n := range c.Nodes {
			if err := n.Err(); !errors.Is(err, godwit.ErrClosed) {
				t.Fatalf("node %d ended with %v, want %v", n.self, err, godwit.ErrClosed)
			}
		}
	}
}
