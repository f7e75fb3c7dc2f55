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
	many := 0
	for _, nodes := range []int{1, 2, 3, 5} {
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
					if len(part) > 4096 && home != nodes-1 {
						many++
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
	if many < 10 {
		t.Errorf("%d parts took more than one answer: the test is vacuous", many)
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
		if open := len(n.workers[0].scans.open); open > 0 {
			t.Errorf("%d parts of scans are open at node %d", open, n.self)
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

// A node may have many scans open, and no more: one too many is refused, and what
// was refused leaves room for others when some end, be it before their answers.
func TestOneScanTooManyIsRefused(t *testing.T) {
	g := newGate()
	c := clusterOver(t, 2, Config{Model: model(t, 400, 1), Workers: 2}, g.place)
	n := c.Nodes[0]
	must(t, godwit.PushRange(background(t), n.Worker(0), 0, 400, make([]float32, 400)))
	g.shut(1)
	var last error
	open := 0 // some may be answered before the gate is shut
	for ; open < 4*maxScans && last == nil; open++ {
		s := scan{w: n.workers[open%2], end: 400} // that begins and takes nothing
		if err := s.begin(background(t), 1); err != nil {
			last = s.fail(err)
		}
		s.close()
	}
	var op *godwit.OpError
	if !errors.As(last, &op) || op.Op != "scan" || op.Peer != 1 || !errors.Is(last, godwit.ErrFull) || open <= maxScans {
		t.Fatalf("scan %d: %v, want %v at node 1 after %d", open, last, godwit.ErrFull, maxScans)
	}
	if got := n.scanning[1].Load(); got > maxScans {
		t.Errorf("%d scans are open, want at most %d", got, maxScans)
	}
	g.open(1)
	eventually(t, "an end of scans that nobody waits for", func() bool { return n.scanning[1].Load() == 0 })
	if keys := scanned(t, n.Worker(1), 0, 400, godwit.NoNode); len(keys) != 400 {
		t.Errorf("%d keys come afterwards, want 400", len(keys))
	}
	for i, w := range n.workers {
		w.scans.mu.Lock()
		if len(w.scans.open) != 0 {
			t.Errorf("%d parts of scans of worker %d are open", len(w.scans.open), i)
		}
		w.scans.mu.Unlock()
	}
}

// Questions of scans are short, and answers long: who asks, and takes no answers,
// gets no more of them than have room, and its questions wait, up to a bound.
func TestWhoAsksForScansAndTakesNoAnswersIsBounded(t *testing.T) {
	const keys, peer = 3000, godwit.NodeID(1)
	session := told{lonely{nodes: 3}, make(chan error, 1)}
	n := quietNode(t, Config{Model: model(t, keys, 1), Policy: placement.Static, Workers: 1, Session: session})
	own := homedAt(t, n, n.self, 20)
	for _, k := range own {
		must(t, n.workers[0].Push(background(t), []godwit.Key{k}, []float32{1}))
	}
	in, o := n.inbound(peer), n.links.To(peer)
	ask := func(op uint64) error {
		return n.frame(in, frameOf(wire.Record{Kind: wire.Scan, Op: op, Seq: keys}))
	}
	d := wire.Decoder{Lists: &wire.Known{}}
	answers := func() (ops []uint64) {
		for f := o.Take(nil); len(f) > 0; f = o.Take(f) {
			must(t, d.Reset(f))
			for r := (wire.Record{}); ; {
				more, err := d.Next(&r)
				must(t, err)
				if !more {
					break
				}
				if r.Kind == wire.Scanned {
					ops = append(ops, r.Op)
				}
			}
		}
		return ops
	}
	must(t, ask(1))
	if got := answers(); !slices.Equal(got, []uint64{1}) {
		t.Fatalf("the scans %v are answered, want 1", got)
	}

	o.Push(make([]byte, host.Usual.Answers+wire.DataLen)) // it takes nothing
	var want []uint64
	for op := range uint64(maxScans) {
		must(t, ask(op))
		want = append(want, op)
	}
	before := o.Counts().Queued
	if !n.pacer.round() {
		t.Error("a round leaves nothing for later")
	}
	if now := o.Counts().Queued; now != before {
		t.Errorf("%d bytes are queued, want %d as before: there is no room", now, before)
	}
	if err := ask(maxScans); err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxScans)) || !strings.Contains(err.Error(), "scans") {
		t.Errorf("one scan too many: %v", err)
	}
	must(t, n.frame(n.inbound(2), frameOf(wire.Record{Kind: wire.Scan, Op: 7, Seq: keys}))) // others are not held up
	if n.links.To(2).Counts().Queued == 0 {
		t.Error("another node gets no answer")
	}

	o.Take(nil)
	if n.pacer.round() {
		t.Error("a round leaves something for later, though there is room")
	}
	if got := answers(); !slices.Equal(got, want) {
		t.Errorf("%d scans are answered, want %d, in their order", len(got), len(want))
	}

	// What cannot be answered is the same late as early.
	o.Push(make([]byte, host.Usual.Answers+wire.DataLen))
	must(t, n.frame(in, frameOf(wire.Record{Kind: wire.Scan, Op: 1, Seq: keys + 1})))
	o.Take(nil)
	n.pacer.round()
	select {
	case err := <-session.failed:
		if !strings.Contains(err.Error(), "node 1") || !strings.Contains(err.Error(), "up to 3001") {
			t.Errorf("the run ended with %q", err)
		}
	default:
		t.Error("a scan beyond the last key did not end the run")
	}
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
