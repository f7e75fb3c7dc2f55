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
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/placement"
)

// soon is how long a blocked operation may take to end after a node was lost,
// on a busy machine. Loss is noticed within half a second on an idle one.
const soon = patience / 2

// blocked starts operations on all workers but those of a node that will be
// lost, of every kind that can wait, and returns a function that collects how
// they ended.
func blocked(c *Cluster, victim godwit.NodeID) (ended func(t *testing.T)) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	ops := map[string]func(w godwit.Worker, keys []godwit.Key) error{
		"pull":      func(w godwit.Worker, keys []godwit.Key) error { return w.Pull(ctx, keys, valuesOf(w.Model(), keys)) },
		"push":      func(w godwit.Worker, keys []godwit.Key) error { return w.Push(ctx, keys, valuesOf(w.Model(), keys)) },
		"set":       func(w godwit.Worker, keys []godwit.Key) error { return w.Set(ctx, keys, valuesOf(w.Model(), keys)) },
		"localize":  func(w godwit.Worker, keys []godwit.Key) error { return w.Localize(ctx, keys) },
		"wait-sync": func(w godwit.Worker, _ []godwit.Key) error { return w.WaitSync(ctx) },
		"barrier":   func(w godwit.Worker, _ []godwit.Key) error { return w.Barrier(ctx) },
		"scan": func(w godwit.Worker, _ []godwit.Key) error {
			for _, err := range w.Scan(ctx, 0, godwit.Key(w.Model().Keys()), godwit.NoNode) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	names := []string{"pull", "push", "set", "localize", "wait-sync", "barrier", "scan"}
	type end struct {
		op  string
		who godwit.WorkerID
		err error
		at  time.Time
	}
	ends := make(chan end, 1000)
	var wg sync.WaitGroup
	for _, n := range c.Nodes {
		if n.self == victim {
			continue
		}
		for i, w := range n.Workers() {
			wg.Go(func() {
				op := names[i%len(names)]
				rng := rngOf(w.ID())
				var err error
				for err == nil { // traffic of all kinds until it ends
					err = ops[op](w, some(rng, w.Model(), 20))
				}
				ends <- end{op, w.ID(), err, time.Now()}
				for _, op := range names { // and from then on
					keys := []godwit.Key{godwit.Key(rng.Uint64N(w.Model().Keys()))}
					ends <- end{op + " afterwards", w.ID(), ops[op](w, keys), time.Now()}
				}
			})
		}
	}
	return func(t *testing.T) {
		defer cancel()
		lost := time.Now()
		wg.Wait()
		close(ends)
		for e := range ends {
			var op *godwit.OpError
			switch {
			case !errors.Is(e.err, godwit.ErrPeerLost) || !errors.As(e.err, &op):
				t.Errorf("%v: %s: %v, want an OpError of %v", e.who, e.op, e.err, godwit.ErrPeerLost)
			case !strings.Contains(e.err.Error(), fmt.Sprintf("node %d", victim)):
				t.Errorf("%v: %s: %v does not name node %d", e.who, e.op, e.err, victim)
			case e.at.Sub(lost) > soon:
				t.Errorf("%v: %s ended after %v", e.who, e.op, e.at.Sub(lost))
			}
		}
	}
}

func TestALostNodeEndsEveryOperationEverywhere(t *testing.T) {
	ways := map[string]func(c *Cluster, victim godwit.NodeID){
		"killed": func(c *Cluster, victim godwit.NodeID) { c.Hub.Kill(victim) },
		"its connections are cut": func(c *Cluster, victim godwit.NodeID) {
			c.Nodes[victim].links.Close()
		},
		"it fails": func(c *Cluster, victim godwit.NodeID) {
			c.Nodes[victim].cfg.Session.Fail(errors.New("out of cheese"))
		},
	}
	places := map[string]places{"mem": newGate().place, "tcp": overTCP}
	for way, lose := range ways {
		for net, place := range places {
			t.Run(way+"/"+net, func(t *testing.T) {
				noLeak(t, func() {
					c := clusterOver(t, 3, Config{Model: lengths(t), Workers: 7}, place)
					const victim = 2
					ended := blocked(c, victim)
					time.Sleep(20 * time.Millisecond)
					lose(c, victim)
					ended(t)
					for _, n := range c.Nodes {
						select {
						case <-n.Done():
						case <-time.After(patience):
							t.Errorf("node %d goes on", n.self)
						}
						if n.self != victim && !errors.Is(n.Err(), godwit.ErrPeerLost) {
							t.Errorf("node %d ended with %v", n.self, n.Err())
						}
					}
					closeAll(t, c)
				})
			})
		}
	}
}

func TestNothingIsLeftRunningAfterClose(t *testing.T) {
	for _, place := range []places{newGate().place, overTCP} {
		noLeak(t, func() {
			c := clusterOver(t, 3, Config{Model: lengths(t), Workers: 2}, place)
			each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
				for range 20 {
					keys := some(rng, w.Model(), 20)
					if err := w.Push(ctx, keys, valuesOf(w.Model(), keys)); err != nil {
						return err
					}
				}
				return w.Barrier(ctx)
			})
			closeAll(t, c)
			closeAll(t, c) // twice is harmless
		})
	}
}

// Nodes that are closed while their workers work end them with an error and
// touch nothing that is gone.
func TestShutdownUnderTraffic(t *testing.T) {
	for _, p := range []placement.Policy{placement.Adaptive, placement.ReplicateAll, placement.Static} {
		for _, nodes := range []int{1, 3} {
			noLeak(t, func() {
				ctx := background(t)
				c, err := Local(ctx, nodes, Config{Model: lengths(t), Policy: p, Workers: 3})
				must(t, err)
				var wg sync.WaitGroup
				for _, n := range c.Nodes {
					for _, w := range n.Workers() {
						wg.Go(func() {
							rng := rngOf(w.ID())
							var err error
							for err == nil {
								keys := some(rng, w.Model(), 20)
								buf := valuesOf(w.Model(), keys)
								switch rng.IntN(6) {
								case 0:
									_, err = w.PushAsync(ctx, keys, buf)
								case 1:
									err = w.Push(ctx, keys, buf)
								case 2:
									err = w.Intent(keys, w.Clock(), w.Advance()+3)
								case 3:
									err = w.WaitSync(ctx)
								case 4:
									_, err = w.LocalizeAsync(ctx, keys)
								default:
									err = w.Pull(ctx, keys, buf)
								}
							}
							if !errors.Is(err, godwit.ErrClosed) && !errors.Is(err, godwit.ErrPeerLost) {
								t.Errorf("%s, %v: ended with %v", p.Name(), w.ID(), err)
							}
							if w.PullIfLocal(0, make([]float32, 1)) {
								t.Errorf("%s, %v: a closed node has keys", p.Name(), w.ID())
							}
						})
					}
				}
				time.Sleep(5 * time.Millisecond)
				must(t, c.Close(ctx))
				wg.Wait()
			})
		}
	}
}

// A node that reads nothing costs the others bounded memory, holds up only who
// asks it for something, and gets everything when it reads again.
func TestAStalledNodeHoldsUpOnlyWhoAsksIt(t *testing.T) {
	g := newGate()
	const dim, per = 250, 100
	c := clusterOver(t, 3, Config{Model: model(t, 3000, dim), Policy: placement.Static, Workers: 2}, g.place)
	n := c.Nodes[0]
	slow, quick := homedAt(t, n, 2, per), homedAt(t, n, 1, per)
	g.shut(2)
	push := make([]float32, per*dim)
	for i := range push {
		push[i] = 1
	}
	done := make(chan error)
	pushed := 0
	w0, w1 := n.Worker(0), n.Worker(1)
	enough := errors.New("waited long enough")
	waits, giveUp := context.WithCancelCause(background(t))
	go func() {
		for {
			if _, err := w0.PushAsync(waits, slow, push); err != nil {
				done <- err
				return
			}
			pushed++
		}
	}()
	full := c.Nodes[w0.ID().Node].ops.Of(w0.ID().Local).Short
	eventually(t, "there is no room for more requests to the stalled node", full)
	ctx := background(t)
	began := time.Now()
	for range 50 {
		must(t, w1.Push(ctx, quick, push))
		must(t, w1.Pull(ctx, quick, push))
		for i := range push {
			push[i] = 1
		}
	}
	if !full() {
		t.Errorf("there was room again: the test is vacuous")
	}
	t.Logf("100 operations at another node took %v", time.Since(began))
	giveUp(enough)
	err := <-done
	var op *godwit.OpError
	if !errors.Is(err, enough) || !errors.As(err, &op) || op.Peer != 2 {
		t.Errorf("who asks the stalled node got %v, want to hear that node 2 is behind", err)
	}
	t.Log(err)
	queued := n.links.To(2).Counts().Queued
	if limit := host.Usual.Asked/3 + host.Usual.Frame; queued > limit {
		t.Errorf("%d bytes are queued, want at most %d", queued, limit)
	}
	g.open(2)
	dst := make([]float32, per*dim)
	must(t, w0.Pull(ctx, slow, dst))
	for i, v := range dst {
		// The call that was given up may have taken effect in part.
		if v != float32(pushed) && v != float32(pushed+1) {
			t.Fatalf("float %d is %v after %d pushes", i, v, pushed)
		}
	}
}

// One call may be larger than any queue.
func TestACallLargerThanTheQueuesPasses(t *testing.T) {
	const keys, dim = 12_000, 1000 // 48 MB
	m := model(t, 40, dim)
	c := local(t, 2, Config{Model: m, Workers: 1})
	there := homedAt(t, c.Nodes[0], 1, 10)
	call := make([]godwit.Key, keys)
	for i := range call {
		call[i] = there[i%len(there)]
	}
	ctx := background(t)
	buf := make([]float32, keys*dim)
	for i := range buf {
		buf[i] = 1
	}
	w := c.Nodes[0].Worker(0)
	must(t, w.Push(ctx, call, buf))
	must(t, w.Pull(ctx, call, buf))
	for i, v := range buf {
		if v != keys/10 {
			t.Fatalf("float %d is %v, want %v", i, v, keys/10)
		}
	}
}
