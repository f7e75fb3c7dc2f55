package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

func scanned(t testing.TB, w godwit.Worker, first, end godwit.Key, home godwit.NodeID) []godwit.Key {
	t.Helper()
	var keys []godwit.Key
	for k, err := range w.Scan(background(t), first, end, home) {
		must(t, err)
		keys = append(keys, k)
	}
	return keys
}

// inRange returns the keys of a sorted list that are in a range.
func inRange(keys []godwit.Key, first, end godwit.Key) []godwit.Key {
	i, _ := slices.BinarySearch(keys, first)
	j, _ := slices.BinarySearch(keys, end)
	return keys[i:j]
}

func TestConformanceC25TheHomesPartsOfAScanAreAllKeysInUseOnceAndInOrder(t *testing.T) {
	const keys = 60_000
	rng := rand.New(rand.NewPCG(*seed, 9))
	all := make([]godwit.Key, keys)
	for k := range all {
		all[k] = godwit.Key(k)
	}
	for _, nodes := range fewer(1, 2, 3, 5) {
		for what, used := range map[string][]godwit.Key{
			"no key": nil, "the first": {0}, "the last": {keys - 1}, "the first and the last": {0, keys - 1},
			"one": {12_345}, "a few": {7, 8, 9, 4095, 4096, 32_768, 50_000}, "all": all,
			"a third": func() (some []godwit.Key) {
				for _, k := range all {
					if rng.IntN(3) == 0 {
						some = append(some, k)
					}
				}
				return some
			}(),
		} {
			c := local(t, nodes, Config{Model: modelOf(t, godwit.Table{Name: "a", Rows: keys - 100, Dim: 1}, godwit.Table{Name: "b", Rows: 100, Dim: 2}), Workers: 1, Policy: placement.RelocateAll})
			each(t, c, func(ctx context.Context, w godwit.Worker, _ *rand.Rand) error {
				n := len(used) / nodes
				mine := used[n*int(w.ID().Node):]
				if int(w.ID().Node) < nodes-1 {
					mine = mine[:n]
				}
				floats, _ := w.Model().Floats(mine)
				if err := w.Localize(ctx, mine[:min(len(mine), 1000)]); err != nil { // some are away from their homes
					return err
				}
				return w.Push(ctx, mine, make([]float32, floats))
			})
			w := c.Nodes[nodes-1].Worker(0)
			for i := range 4 {
				first, end := godwit.Key(0), godwit.Key(keys)
				if i > 0 {
					a, b := godwit.Key(rng.IntN(keys+1)), godwit.Key(rng.IntN(keys+1))
					first, end = min(a, b), max(a, b)
				}
				want := inRange(used, first, end)
				if got := scanned(t, w, first, end, godwit.NoNode); !slices.Equal(got, want) {
					t.Fatalf("-seed %d: %d nodes, %s: of the keys %d … %d a scan has %d, want %d", *seed, nodes, what, first, end, len(got), len(want))
				}
				var union []godwit.Key
				for home := range nodes {
					part := scanned(t, w, first, end, godwit.NodeID(home))
					if !slices.IsSorted(part) {
						t.Fatalf("-seed %d: %d nodes, %s: the part of node %d is in disorder", *seed, nodes, what, home)
					}
					if what == "all" && i == 0 && len(part) <= 4096 {
						t.Errorf("%d nodes: the part of node %d, %d keys, takes one answer: the test is vacuous", nodes, home, len(part))
					}
					union = append(union, part...)
				}
				slices.Sort(union)
				if !slices.Equal(union, want) {
					t.Fatalf("-seed %d: %d nodes, %s: of the keys %d … %d the homes have %d, want %d", *seed, nodes, what, first, end, len(union), len(want))
				}
			}
		}
	}
}

func TestAScanMayBeOneOfSeveralAndItsLoopMayEndEarlyAndUseTheWorker(t *testing.T) {
	const keys = 20_000
	ctx := background(t)
	c := local(t, 3, Config{Model: model(t, keys, 1), Workers: 1})
	w := c.Nodes[1].Worker(0)
	must(t, godwit.PushRange(ctx, w, 0, keys, make([]float32, keys)))
	n := 0
	for k, err := range w.Scan(ctx, 0, keys, godwit.NoNode) {
		must(t, err)
		if k != godwit.Key(n) {
			t.Fatalf("key %d comes where key %d should", k, n)
		}
		n++
		if k%4000 == 0 {
			for j, err := range w.Scan(ctx, k, keys, 2) {
				must(t, err)
				must(t, w.Push(ctx, []godwit.Key{j}, []float32{1}))
				if j > k+20 {
					break
				}
			}
		}
		if k == 15_000 {
			break
		}
	}
	if n != 15_001 {
		t.Errorf("%d keys came", n)
	}
	if rows := len(scanned(t, w, 0, keys, godwit.NoNode)); rows != keys {
		t.Errorf("%d keys came afterwards, want %d", rows, keys)
	}
	must(t, w.Barrier(afterOthers(t, c, 1)))
	for _, n := range c.Nodes {
		if err := n.workers.Resting(); err != nil {
			t.Errorf("node %d: %v", n.self, err)
		}
	}
}

// afterOthers has all workers but one at the barrier, and returns a context.
func afterOthers(t testing.TB, c *Cluster, but int) context.Context {
	ctx := background(t)
	for i, n := range c.Nodes {
		if i != but {
			go func() { _ = n.Worker(0).Barrier(ctx) }()
		}
	}
	return ctx
}

func TestABadScanSaysWhatIsWrong(t *testing.T) {
	c := local(t, 2, Config{Model: model(t, 40, 1), Workers: 1})
	w := c.Nodes[0].Worker(0)
	ended, cancel := context.WithCancel(background(t))
	cancel()
	for what, x := range map[string]struct {
		ctx        context.Context
		first, end godwit.Key
		home       godwit.NodeID
		is         error
	}{
		"beyond the last key":   {background(t), 0, 41, godwit.NoNode, godwit.ErrKeyRange},
		"backwards":             {background(t), 7, 6, godwit.NoNode, godwit.ErrKeyRange},
		"at a node there isn't": {background(t), 0, 40, 2, nil},
		"with an ended context": {ended, 0, 40, godwit.NoNode, context.Canceled},
	} {
		n := 0
		for _, err := range w.Scan(x.ctx, x.first, x.end, x.home) {
			n++
			var op *godwit.OpError
			if !errors.As(err, &op) || op.Op != "scan" || op.First != x.first || x.is != nil && !errors.Is(err, x.is) {
				t.Errorf("%s: error %v", what, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d results, want an error", what, n)
		}
	}
}

func TestAScanThatWaitsTooLongNamesTheNode(t *testing.T) {
	g := newGate()
	c := clusterOver(t, 3, Config{Model: model(t, 400, 1), Workers: 1}, g.place)
	w := c.Nodes[0].Worker(0)
	must(t, godwit.PushRange(background(t), w, 0, 400, make([]float32, 400)))
	g.shut(1)
	var last error
	var op *godwit.OpError
	for long := 20 * time.Millisecond; ; long *= 4 {
		ctx, cancel := context.WithTimeout(context.Background(), long)
		for _, err := range w.Scan(ctx, 0, 400, godwit.NoNode) {
			last = err
		}
		cancel()
		if !errors.Is(last, context.DeadlineExceeded) || !errors.As(last, &op) || op.Op != "scan" || op.Keys != 400 || op.Last != 399 {
			t.Fatalf("error %v", last)
		}
		if op.Peer == 1 {
			break
		}
		if long > 10*time.Second { // on a busy machine, another may be late, too
			t.Fatalf("error %v, want one that names node 1", last)
		}
	}
	g.open(1)
	if n := len(scanned(t, w, 0, 400, godwit.NoNode)); n != 400 {
		t.Errorf("%d keys come afterwards, want 400", n)
	}
}

func TestAllWorkersMayScanAtOnceWhileKeysComeIntoUse(t *testing.T) {
	const keys = 20_000
	c := local(t, 3, Config{Model: model(t, keys, 1), Workers: 2})
	each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
		mine := map[godwit.Key]bool{}
		for range 5 {
			some := make([]godwit.Key, 200)
			for i := range some {
				some[i] = godwit.Key(rng.IntN(keys))
				mine[some[i]] = true
			}
			if err := w.Push(ctx, some, make([]float32, len(some))); err != nil {
				return err
			}
			found, last := 0, godwit.Key(0)
			for k, err := range w.Scan(ctx, 0, keys, godwit.NoNode) {
				if err != nil {
					return err
				}
				if k < last || found > 0 && k == last {
					return fmt.Errorf("key %d comes after key %d", k, last)
				}
				if last = k; mine[k] {
					found++
				}
			}
			if found != len(mine) {
				return fmt.Errorf("%d of %d keys come that this worker has pushed", found, len(mine))
			}
		}
		return w.Barrier(ctx)
	})
}

func TestAScanOfANodeThatWasClosedEndsWithItsError(t *testing.T) {
	c := local(t, 2, Config{Model: model(t, 40, 1), Workers: 1})
	closeAll(t, c)
	var last error
	for _, err := range c.Nodes[0].Worker(0).Scan(background(t), 0, 40, godwit.NoNode) {
		last = err
	}
	if !errors.Is(last, godwit.ErrClosed) {
		t.Errorf("error %v", last)
	}
}

// A round answers the scans that there was no room for before, and one that cannot be
// answered ends the run late as early.
func TestARoundAnswersScansThatWait(t *testing.T) {
	const keys, peer = 3000, godwit.NodeID(1)
	session := told{lonely{nodes: 3}, make(chan error, 1)}
	n := quietNode(t, Config{Model: model(t, keys, 1), Policy: placement.Static, Workers: 1, Session: session})
	in, o := n.receiver.Inbound(peer), n.links.To(peer)
	full := make([]byte, host.Usual.Answers+wire.DataLen)
	ask := func(end uint64) {
		t.Helper()
		must(t, in.Frame(frameOf(wire.Record{Kind: wire.Scan, Op: 1, Seq: end})))
	}
	o.Push(full) // it takes nothing
	ask(keys)
	if !n.loop.Round() {
		t.Error("a round leaves nothing for later, though there is no room")
	}
	o.Take(nil)
	if n.loop.Round() || o.Counts().Queued == 0 {
		t.Error("a round does not answer when there is room")
	}
	o.Push(full)
	ask(keys + 1)
	for len(o.Take(nil)) > 0 {
	}
	n.loop.Round()
	select {
	case err := <-session.failed:
		if !strings.Contains(err.Error(), "node 1") || !strings.Contains(err.Error(), "up to 3001") {
			t.Errorf("the run ended with %q", err)
		}
	default:
		t.Error("a scan beyond the last key did not end the run")
	}
}
