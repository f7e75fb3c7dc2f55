package node

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/racing"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/placement"
)

// stalling is three nodes of which node 1 asks node 0 for 400 MB of rows and then
// reads nothing.
type stalling struct {
	*Cluster
	gate   *gate
	asker  *Node
	keys   []godwit.Key // that are asked for, homed at node 0
	beside []godwit.Key // of node 0 too, for node 2
}

const (
	stalledDim  = 25_000 // 100 KB a row
	stalledKeys = 4000   // 400 MB
)

func stall(t testing.TB, p placement.Policy) *stalling {
	t.Helper()
	s := &stalling{gate: newGate()}
	s.Cluster = clusterOver(t, 3, Config{Workers: 1, Policy: p,
		Model: modelOf(t, godwit.Table{Name: "large", Rows: 4 * stalledKeys, Dim: stalledDim, Init: godwit.Uniform{Lo: 1, Hi: 2}}, godwit.Table{Name: "small", Rows: 1000, Dim: 16})}, s.gate.place)
	s.asker = s.Nodes[1]
	for k := godwit.Key(0); s.asker.cfg.Model.Has(k); k++ {
		switch i, _ := s.asker.cfg.Model.Locate(k); {
		case s.asker.proto.Homes.Home(k) != 0:
		case i == 1:
			s.beside = append(s.beside, k)
		case len(s.keys) < stalledKeys:
			s.keys = append(s.keys, k)
		}
	}
	if len(s.keys) < stalledKeys || len(s.beside) < 50 {
		t.Fatalf("%d and %d keys", len(s.keys), len(s.beside))
	}
	return s
}

// stop has the asker read nothing until read is called, or the test ends.
func (s *stalling) stop(t testing.TB) (read func()) {
	s.gate.shut(1)
	read = sync.OnceFunc(func() { s.gate.open(1) })
	t.Cleanup(read)
	return read
}

// queued returns the bytes in the owner's queue to the asker, and the greatest
// that it ever saw.
func (s *stalling) queued(most *atomic.Int64) int64 {
	queued := int64(s.Nodes[0].links.To(1).Counts().Queued)
	most.Store(max(most.Load(), queued))
	return queued
}

// askings are the ways to ask for many rows: what a worker of a policy does, and what
// says that it has asked for as much as it may.
var askings = []struct {
	name   string
	policy placement.Policy
	ask    func(ctx context.Context, w godwit.Worker, keys []godwit.Key) error
	full   func(n *Node) bool
}{
	{"pull", placement.Static, func(ctx context.Context, w godwit.Worker, keys []godwit.Key) error {
		part := keys[:len(keys)/40] // 10 MB at a time, of the same rows: their values need not all be kept
		dst := make([]float32, len(part)*stalledDim)
		var hs []godwit.Handle
		for range 40 {
			h, err := w.PullAsync(ctx, part, dst)
			if err != nil {
				return err
			}
			hs = append(hs, h)
		}
		return w.Wait(ctx, hs...)
	}, waitsForRoom},
	{"localize", placement.RelocateAll, func(ctx context.Context, w godwit.Worker, keys []godwit.Key) error {
		return w.Localize(ctx, keys)
	}, waitsForRoom},
	{"intent", placement.Adaptive, func(ctx context.Context, w godwit.Worker, keys []godwit.Key) error {
		return w.Intent(keys, 0, godwit.Forever)
	}, wantsMore},
	{"intent that moves", placement.RelocateAll, func(ctx context.Context, w godwit.Worker, keys []godwit.Key) error {
		return w.Intent(keys, 0, godwit.Forever)
	}, wantsMore},
}

func waitsForRoom(n *Node) bool { return n.ops.Of(0).Short() }

// wantsMore reports whether all of an intent was acted on: keys for which there is
// no room wait for it.
func wantsMore(n *Node) bool {
	return n.rows.Totals().Rows >= stalledKeys
}

// answered reports whether the owner has answered all that the asker has asked for.
func (s *stalling) answered() bool {
	rows := (s.asker.ops.Of(0).UnderWay() + s.asker.links.Asked()) / link.CostOf(stalledDim)
	c := s.Nodes[0].links.To(1).Counts()
	return int64(c.Plain)+int64(c.Queued) >= rows*4*stalledDim
}

// A node that asks for much and reads nothing costs the owner of the rows bounded
// memory, holds up nobody else, and gets everything when it reads again.
func TestANodeThatAsksForMuchAndReadsNothingCostsBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("400 MB")
	}
	for i, x := range askings {
		if racing.Enabled && i > 0 {
			break // bytes are counted without the race detector, which makes all of it seven times as long
		}
		t.Run(x.name, func(t *testing.T) {
			s := stall(t, x.policy)
			ctx := background(t)
			var most atomic.Int64
			read := s.stop(t)
			runtime.GC()
			before := heap()
			over := make(chan error, 1)
			go func() { over <- x.ask(ctx, s.asker.Worker(0), s.keys) }()
			eventually(t, "the asker has asked for as much as it may", func() bool {
				s.queued(&most)
				return x.full(s.asker) || s.Nodes[0].Err() != nil
			})
			must(t, s.Nodes[0].Err())
			eventually(t, "the owner has answered", func() bool {
				s.queued(&most)
				return s.answered() || s.Nodes[0].Err() != nil
			})
			must(t, s.Nodes[0].Err())
			if s.queued(&most) < 4<<20 {
				t.Fatalf("at most %d bytes are queued: the test is vacuous", most.Load())
			}

			third, v := s.Nodes[2].Worker(0), make([]float32, 16)
			for range 100 { // the asker has asked for all that it will: nothing is to be waited for but this
				for _, k := range s.beside[:50] {
					must(t, third.Pull(ctx, []godwit.Key{k}, v))
				}
				s.queued(&most)
			}
			runtime.GC()
			grown := heap() - before
			t.Logf("%d MB asked for: at most %.1f MiB were queued, the heap grew by %.1f MiB", stalledKeys*stalledDim*4/1_000_000, float64(most.Load())/(1<<20), float64(grown)/(1<<20))
			if most.Load() > 64<<20 || grown > 64<<20 {
				t.Errorf("at most %d bytes were queued, the heap grew by %d, want at most 64 MiB", most.Load(), grown)
			}
			read()
			must(t, <-over)
			eventually(t, "all rows are there", func() bool {
				if err := s.asker.Err(); err != nil {
					t.Fatal(err)
				}
				return x.policy == placement.Static || s.Nodes[1].Stats().Owned+s.Nodes[1].Stats().Replicas >= stalledKeys
			})
			if asked := s.asker.ops.Of(0).UnderWay(); asked != 0 {
				t.Errorf("%d bytes count as under way at the end", asked)
			}
			if asked := s.asker.links.Asked(); asked != 0 {
				t.Errorf("%d bytes of rows count as asked for at the end", asked)
			}
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A peer that asks for more than any node may, and reads nothing, ends the run.
func TestAPeerThatAsksWithoutEndAndReadsNothingEndsTheRun(t *testing.T) {
	g := newGate()
	c := clusterOver(t, 3, Config{Model: model(t, 3000, 1000), Policy: placement.Static, Workers: 1}, g.place)
	keys := homedAt(t, c.Nodes[0], 0, 500)
	g.shut(1)
	t.Cleanup(func() { g.open(1) })
	var recs []wire.Record
	for i, k := range keys {
		recs = append(recs, wire.Record{Kind: wire.Pull, Key: k, Origin: 1, Op: 1, Index: uint32(i), Hops: 1})
	}
	l, most := c.Nodes[0].links.To(1), 0
	over := func() bool {
		most = max(most, l.Counts().Queued)
		return c.Nodes[0].Err() != nil || most > 2*host.Usual.Owed
	}
	for sent := 0; sent < 200 && !over(); sent++ { // 400 MB of answers
		say(c.Nodes[1+sent%2], 0, frameOf(recs...)) // whoever passes it on, the origin is meant
	}
	eventually(t, "the end of the run", over)
	for _, n := range c.Nodes {
		<-n.Done() // it may hear of it later
	}
	err := c.Nodes[0].Err()
	if !errors.Is(err, godwit.ErrPeerLost) || !strings.Contains(err.Error(), "node 1") || !strings.Contains(err.Error(), "128 MiB of answers") {
		t.Errorf("the run ended with %v", err)
	}
	if most > host.Usual.Owed+4*host.Usual.Frame {
		t.Errorf("%d bytes were queued", most)
	}
}

// BenchmarkPullsBesideAStalledAsker is pulls of single keys by a third node, while
// another one has asked the same owner for 400 MB and reads nothing, beside those
// while it does not.
func BenchmarkPullsBesideAStalledAsker(b *testing.B) {
	for _, x := range append(askings[:0:0], askings[:3]...) {
		for _, stalled := range []bool{false, true} {
			name := x.name + "/alone"
			if stalled {
				name = x.name + "/beside"
			}
			b.Run(name, func(b *testing.B) {
				s := stall(b, x.policy)
				ctx, cancel := context.WithCancel(background(b))
				over := make(chan error, 1)
				if stalled {
					defer s.stop(b)()
					go func() { over <- x.ask(ctx, s.asker.Worker(0), s.keys) }()
					eventually(b, "the asker has asked for as much as it may", func() bool { return x.full(s.asker) })
				}
				third, v := s.Nodes[2].Worker(0), make([]float32, 16)
				b.ResetTimer()
				for i := range b.N {
					must(b, third.Pull(ctx, s.beside[i%50:i%50+1], v))
				}
				b.StopTimer()
				if stalled {
					cancel()
					<-over
				}
				cancel()
			})
		}
	}
}
