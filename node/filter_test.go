package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

// filtered is a model with one table of values of two floats, that filters.
func filtered(t testing.TB, rows uint64, fs ...godwit.Filter) *godwit.Model {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: 2, Filters: fs})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// abroad returns a key whose home is another node than n.
func abroad(t testing.TB, n *Node) godwit.Key {
	t.Helper()
	for k := godwit.Key(0); n.cfg.Model.Has(k); k++ {
		if n.proto.Homes.Home(k) != n.self {
			return k
		}
	}
	t.Fatal("all keys have their home here")
	return 0
}

func pulled(t testing.TB, w godwit.Worker, k godwit.Key) []float32 {
	t.Helper()
	v := make([]float32, w.Model().Dim(k))
	if err := w.Pull(t.Context(), []godwit.Key{k}, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// big holds back what has no 10 in it.
var big = filter.Significant{Threshold: 10}

func TestWhatAFilterHoldsBackGoesWithTheNextPush(t *testing.T) {
	c := local(t, 2, Config{Model: filtered(t, 1000, big), Policy: placement.Static, Workers: 1})
	w := c.Nodes[0].Worker(0)
	k := []godwit.Key{abroad(t, c.Nodes[0])}
	push := []float32{4, 0}
	for _, want := range []float32{0, 0, 12, 12} {
		must(t, w.Push(t.Context(), k, push))
		if got := pulled(t, w, k[0]); got[0] != want {
			t.Fatalf("after another 4 the value is %v, want %v", got, want)
		}
	}
	if push[0] != 4 {
		t.Errorf("the pushed vector is %v now", push)
	}
	must(t, w.WaitSync(t.Context()))
	if got := pulled(t, w, k[0]); got[0] != 16 {
		t.Errorf("after WaitSync the value is %v, want 16", got)
	}
	if s := c.Nodes[0].Stats(); s.HeldBack != 3 || s.Leftovers != 1 || s.FilterIn != 4*8 || s.FilterOut != 8 {
		t.Errorf("%+v", s)
	}
}

func TestWhatAFilterHeldBackGoesWithAPushAtThisNodeWhenTheKeyIsHere(t *testing.T) {
	c := local(t, 2, Config{Model: filtered(t, 1000, big), Policy: placement.RelocateAll, Workers: 1})
	w := c.Nodes[0].Worker(0)
	k := []godwit.Key{abroad(t, c.Nodes[0])}
	must(t, w.Push(t.Context(), k, []float32{4, 1}))
	must(t, w.Localize(t.Context(), k))
	must(t, w.Push(t.Context(), k, []float32{1, 1}))
	v := make([]float32, 2)
	if !w.PullIfLocal(k[0], v) || v[0] != 5 || v[1] != 2 {
		t.Errorf("the key that came here has value %v, want [5 2]", v)
	}
	if n := len(c.Nodes[0].workers.Filters.Residuals()[0].Keys()); n != 0 {
		t.Errorf("%d keys are kept still", n)
	}
}

func TestWaitSyncPushesWhatAllWorkersOfTheNodeKeep(t *testing.T) {
	c := local(t, 2, Config{Model: filtered(t, 1000, big), Policy: placement.Static, Workers: 2})
	k := []godwit.Key{abroad(t, c.Nodes[0])}
	for _, w := range c.Nodes[0].Workers() {
		must(t, w.Push(t.Context(), k, []float32{3, 0}))
	}
	must(t, c.Nodes[0].Worker(1).WaitSync(t.Context()))
	if got := pulled(t, c.Nodes[1].Worker(0), k[0]); got[0] != 6 {
		t.Errorf("the value is %v, want 6", got)
	}
}

func TestASetForgetsWhatItsNodeKept(t *testing.T) {
	c := local(t, 2, Config{Model: filtered(t, 1000, big), Policy: placement.Static, Workers: 2})
	k := []godwit.Key{abroad(t, c.Nodes[0])}
	for _, w := range c.Nodes[0].Workers() {
		must(t, w.Push(t.Context(), k, []float32{3, 0}))
	}
	w := c.Nodes[0].Worker(0)
	must(t, w.Set(t.Context(), k, []float32{0.5, 0.25}))
	must(t, w.WaitSync(t.Context()))
	if got := pulled(t, w, k[0]); got[0] != 0.5 || got[1] != 0.25 {
		t.Errorf("the value is %v, want what was set", got)
	}
}

// A set that was given up before it was sent has overwritten nothing.
func TestASetThatWaitsInVainForgetsNothing(t *testing.T) {
	m := modelOf(t, godwit.Table{Name: "t", Rows: 1000, Dim: 2, Filters: []godwit.Filter{big}, Window: godwit.Within(0)})
	g := newGate()
	c := clusterOver(t, 2, Config{Model: m, Policy: placement.Static, Workers: 1}, g.place)
	w := c.Nodes[0].Worker(0)
	keys := homedAt(t, c.Nodes[0], 1, 2)
	must(t, w.Push(t.Context(), keys[:1], []float32{3, 0}))
	g.shut(1)
	h, err := w.PushAsync(t.Context(), keys[1:], []float32{10, 0})
	must(t, err)
	w.Advance()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err = w.Set(short, keys[:1], []float32{1, 1})
	g.open(1)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "window") {
		t.Fatalf("a set behind a push that is not answered: %v", err)
	}
	must(t, w.Wait(t.Context(), h))
	must(t, w.WaitSync(t.Context()))
	if got := pulled(t, w, keys[0]); got[0] != 3 {
		t.Errorf("the value is %v, want what was kept, 3", got)
	}
}

// A set that is given up half way forgets what was kept of the keys that it has
// overwritten, and of no others.
func TestASetThatIsGivenUpForWantOfRoomForgetsOnlyWhatItSet(t *testing.T) {
	g := newGate()
	c := clusterOver(t, 3, Config{Model: filtered(t, 4000, big), Policy: placement.Static, Workers: 2}, g.place)
	n := c.Nodes[0]
	w, ops := n.Worker(0), n.ops.Of(0)
	const quick, room, slow = 100, 10, 20
	keys := append(homedAt(t, n, 1, quick), homedAt(t, n, 2, slow)...)
	push, set := make([]float32, 2*len(keys)), make([]float32, 2*len(keys))
	for i := range push {
		push[i], set[i] = 3, 0.5
	}
	for _, x := range n.Workers() {
		must(t, x.Push(t.Context(), keys, push))
	}
	g.shut(2)
	read := sync.OnceFunc(func() { g.open(2) })
	t.Cleanup(read)
	cost := link.CostOf(n.cfg.Model.RowLen(keys[0]))
	ops.Room = room * cost
	ctx, giveUp := context.WithCancelCause(background(t))
	enough := errors.New("waited long enough")
	over := make(chan error)
	go func() { over <- w.Set(ctx, keys, set) }()
	// A worker that waits for room goes on when half of it is free.
	got := make([]float32, 2*quick)
	eventually(t, "only the stalled node has not answered", func() bool {
		must(t, n.Worker(1).Pull(t.Context(), keys[:quick], got))
		return !slices.ContainsFunc(got, func(v float32) bool { return v != 0.5 }) && ops.Short() && ops.UnderWay() > ops.Room/2
	})
	giveUp(enough)
	err := <-over
	var op *godwit.OpError
	if !errors.As(err, &op) || op.Peer != 2 || !errors.Is(err, enough) {
		t.Fatalf("a set for which there is no room: %v", err)
	}
	reached := int(ops.UnderWay() / cost)
	if reached <= room/2 || reached > room {
		t.Fatalf("%d keys are under way, where there is room for %d", reached, room)
	}
	read()
	must(t, w.WaitSync(t.Context()))
	for i, k := range keys {
		want := float32(0.5)
		if i >= quick+reached {
			want = 6
		}
		if got := pulled(t, w, k); got[0] != want {
			t.Errorf("the value of key %d of %d is %v, want %v", i, len(keys), got[0], want)
		}
	}
}

// What WaitSync could not push is kept on, and goes with the next one.
func TestAWaitSyncThatIsGivenUpLosesNothingThatWasKept(t *testing.T) {
	c := local(t, 3, Config{Model: filtered(t, 4000, big), Policy: placement.Static, Workers: 2})
	n := c.Nodes[0]
	w := n.Worker(0)
	keys := slices.Concat(homedAt(t, n, 1, 3), homedAt(t, n, 2, 3))
	push := make([]float32, 2*len(keys))
	for i := range push {
		push[i] = float32(i%7 + 1)
	}
	for _, x := range n.Workers() {
		must(t, x.Push(t.Context(), keys, push))
	}
	ops := n.ops.Of(0)
	for cost := ops.Room; cost > 0; cost = ops.Room - ops.UnderWay() { // until nothing else is under way
		if ops.Ask(cost) {
			break
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := w.WaitSync(short)
	ops.Got(ops.Room)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a WaitSync for which there is no room: %v", err)
	}
	must(t, w.WaitSync(t.Context()))
	for i, k := range keys {
		if got, want := pulled(t, w, k), []float32{2 * push[2*i], 2 * push[2*i+1]}; !slices.Equal(got, want) {
			t.Errorf("the value of key %d of %d is %v, want %v", i, len(keys), got, want)
		}
	}
}

// While one WaitSync is pushing what was kept, another one does not take it for
// pushed.
func TestAWaitSyncWaitsForWhatAnotherOneIsPushing(t *testing.T) {
	g := newGate()
	c := clusterOver(t, 2, Config{Model: filtered(t, 1000, big), Policy: placement.Static, Workers: 2}, g.place)
	n := c.Nodes[0]
	k := homedAt(t, n, 1, 1)
	must(t, n.Worker(0).Push(t.Context(), k, []float32{3, 0}))
	g.shut(1)
	done := make(chan error, 2)
	go func() { done <- n.Worker(0).WaitSync(t.Context()) }()
	for begun := time.Now(); n.workers.Filters.Residuals()[0].Some(); {
		if time.Since(begun) > patience {
			t.Fatal("what was kept is not pushed")
		}
		time.Sleep(time.Millisecond)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := n.Worker(1).WaitSync(short); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "what filters left") {
		t.Errorf("another one that gave up says: %v", err)
	}
	go func() { done <- n.Worker(1).WaitSync(t.Context()) }()
	g.open(1)
	must(t, <-done)
	must(t, <-done)
	if got := pulled(t, n.Worker(1), k[0]); got[0] != 3 {
		t.Errorf("the value is %v, want 3", got)
	}
}

// Nor does it once the other one has given up: what that has sent is on its way.
func TestAWaitSyncWaitsForWhatOneThatGaveUpHasSent(t *testing.T) {
	g := newGate()
	c := clusterOver(t, 2, Config{Model: filtered(t, 1000, big), Policy: placement.Static, Workers: 2}, g.place)
	n := c.Nodes[0]
	k := homedAt(t, n, 1, 1)
	must(t, n.Worker(0).Push(t.Context(), k, []float32{3, 0}))
	g.shut(1)
	for sent := false; ; {
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := n.Worker(1).WaitSync(short)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || sent && !strings.Contains(err.Error(), "what filters left") {
			t.Errorf("WaitSync, of which nobody takes anything (what filters left was sent: %v): %v", sent, err)
			break
		}
		if sent {
			break
		}
		sent = !n.workers.Filters.Residuals()[0].Some()
	}
	g.open(1)
	must(t, n.Worker(1).WaitSync(t.Context()))
	if got := pulled(t, c.Nodes[1].Worker(0), k[0]); got[0] != 3 {
		t.Errorf("after WaitSync, the value at its owner is %v, want 3", got)
	}
	must(t, n.Worker(0).WaitSync(t.Context()))
}

func TestANodeThatClosesPushesWhatItKept(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		closesWithWhatItKept(t, local(t, 2, Config{Model: filtered(t, 1000, big), Policy: placement.Static, Workers: 1}))
	})
	t.Run("sockets", func(t *testing.T) { // whose answers the node reads itself
		closesWithWhatItKept(t, clusterOver(t, 2, Config{Model: filtered(t, 1000, big), Policy: placement.Static, Workers: 1}, overTCP))
	})
}

func closesWithWhatItKept(t *testing.T, c *Cluster) {
	k := abroad(t, c.Nodes[0])
	must(t, c.Nodes[0].Worker(0).Push(t.Context(), []godwit.Key{k}, []float32{3, 0}))
	closed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		closed <- c.Nodes[0].Close(ctx)
	}()
	for begun := time.Now(); pulled(t, c.Nodes[1].Worker(0), k)[0] != 3; {
		if time.Since(begun) > patience {
			t.Fatal("what was kept never came")
		}
		time.Sleep(time.Millisecond)
	}
	closeAll(t, c)
	must(t, <-closed)
}

// What a node pushes when it closes takes nothing from its workers, who may be at
// work still.
func TestANodeThatClosesWaitsForNoOperationsOfItsWorkers(t *testing.T) {
	g := newGate()
	c := clusterOver(t, 2, Config{Model: filtered(t, 1000, big), Policy: placement.Static, Workers: 1}, g.place)
	n := c.Nodes[0]
	w, ops, closer := n.Worker(0), n.ops.Of(0), n.ops.Of(1)
	keys := homedAt(t, n, 1, 2)
	must(t, w.Push(t.Context(), keys[:1], []float32{3, 0}))
	g.shut(1)
	var hs []godwit.Handle
	for ops.Open() < host.Usual.Ops { // some may be answered before the gate is shut
		h, err := w.PushAsync(t.Context(), keys[1:], []float32{10, 0})
		must(t, err)
		hs = append(hs, h)
		ops.Reap()
	}
	for long := 20 * time.Millisecond; closer.Open() == 0; long *= 2 { // on a busy machine, it may not come so far
		short, cancel := context.WithTimeout(t.Context(), long)
		err := n.workers.Flush(short)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "earlier operations") {
			t.Fatalf("a node that closes, of which nobody takes anything: %v", err)
		}
	}
	if own, theirs := closer.Open(), ops.Open(); own != 1 || theirs != host.Usual.Ops {
		t.Errorf("%d operations of the node and %d of its worker are open, want 1 and %d", own, theirs, host.Usual.Ops)
	}
	g.open(1)
	must(t, w.Wait(t.Context(), hs...))
	must(t, n.workers.Flush(t.Context()))
	if got := pulled(t, w, keys[0]); got[0] != 3 {
		t.Errorf("the value is %v, want 3", got)
	}
	eventually(t, "the end of what was given up", func() bool { return closer.Open() == 0 })
}

func TestACallMayBringItsOwnFilters(t *testing.T) {
	c := local(t, 2, Config{Model: filtered(t, 1000, big), Policy: placement.Static, Workers: 1})
	w := c.Nodes[0].Worker(0)
	k := []godwit.Key{abroad(t, c.Nodes[0])}
	must(t, w.Push(godwit.WithFilters(t.Context()), k, []float32{1, 0}))
	if got := pulled(t, w, k[0]); got[0] != 1 {
		t.Errorf("a call without filters has the value be %v, want 1", got)
	}
	none := filter.Active{Is: func(godwit.Key) bool { return false }}
	must(t, w.Push(godwit.WithFilters(t.Context(), none), k, []float32{100, 0}))
	must(t, w.WaitSync(t.Context()))
	if got := pulled(t, w, k[0]); got[0] != 1 {
		t.Errorf("what is not active has the value be %v, want 1", got)
	}
	for want, f := range map[string]godwit.Filter{"frames": filter.Compress{Method: filter.S2}, "in 7 bytes": filter.Fixed{Bytes: 7}} {
		err := w.Push(godwit.WithFilters(t.Context(), f), k, []float32{1, 0})
		var op *godwit.OpError
		if !errors.As(err, &op) || op.Op != "push" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s in a call gave %v", f.Name(), err)
		}
	}
	if got := pulled(t, w, k[0]); got[0] != 1 {
		t.Errorf("a refused call has the value be %v, want 1", got)
	}
}

// A call may not lose what its tables cannot do without.
func TestFiltersOfACallThatItsTablesDoNotBearAreRefused(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "plain", Rows: 100, Dim: 1}, godwit.Table{Name: "counts", Rows: 100, Dim: 1, Counts: true},
		godwit.Table{Name: "most", Rows: 100, Dim: 1, Rule: optim.Max{}})
	if err != nil {
		t.Fatal(err)
	}
	n := local(t, 2, Config{Model: m, Policy: placement.Static, Workers: 1}).Nodes[0]
	w := n.Worker(0)
	var keys [3]godwit.Key
	for i := range keys {
		for keys[i] = m.Key(i, 0); n.proto.Homes.Home(keys[i]) == n.self; keys[i]++ {
		}
	}
	for _, x := range []struct {
		f       godwit.Filter
		refused [3]bool
	}{
		{filter.Skip{P: 0.9}, [3]bool{false, true, true}},
		{filter.BF16{}, [3]bool{false, false, true}},
		{filter.Sparse{}, [3]bool{}},
	} {
		ctx := godwit.WithFilters(t.Context(), x.f)
		for i, k := range keys {
			err := w.Push(ctx, []godwit.Key{keys[0], k}, []float32{1, 7})
			if (err != nil) != x.refused[i] || err != nil && !strings.Contains(err.Error(), m.Table(i).Name) {
				t.Errorf("%s of a push to table %s: %v", x.f.Name(), m.Table(i).Name, err)
			}
		}
	}
	must(t, w.WaitSync(t.Context()))
	if got := pulled(t, w, keys[0])[0]; got != 6+3*7 {
		t.Errorf("after six pushes that were not refused, the value is %v, want %v", got, 6+3*7)
	}
}

// A call with filters that cannot be used does nothing, be its keys here or not.
func TestAPushWithFiltersOfNoUseDoesNothing(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "plain", Rows: 100, Dim: 1, Filters: []godwit.Filter{big}}, godwit.Table{Name: "counts", Rows: 100, Dim: 1, Counts: true})
	if err != nil {
		t.Fatal(err)
	}
	n := local(t, 2, Config{Model: m, Policy: placement.Static, Workers: 1}).Nodes[0]
	w := n.Worker(0)
	here, there := homedAt(t, n, 0, 1)[0], homedAt(t, n, 1, 1)[0]
	counts := m.Key(1, 0)
	for n.proto.Homes.Home(counts) != n.self {
		counts++
	}
	must(t, w.Push(t.Context(), []godwit.Key{here, there, counts}, []float32{1, 1, 1})) // of there, it is kept
	if !n.workers.Filters.Residuals()[0].Some() {
		t.Fatal("nothing is kept: the test is vacuous")
	}
	for what, x := range map[string]struct {
		f    godwit.Filter
		keys []godwit.Key
	}{
		"no filter":                    {nil, []godwit.Key{here}},
		"a filter in 7 bytes":          {filter.Fixed{Bytes: 7}, []godwit.Key{here, there}},
		"one of frames":                {filter.Compress{Method: filter.S2}, []godwit.Key{here}},
		"one that leaves out counts":   {filter.Skip{P: 0.9}, []godwit.Key{here, there, counts}},
		"likewise, where all are here": {filter.Skip{P: 0.9}, []godwit.Key{here, counts}},
	} {
		ctx := godwit.WithFilters(t.Context(), x.f)
		for range 2 {
			var op *godwit.OpError
			if err := w.Push(ctx, x.keys, []float32{100, 100, 100}[:len(x.keys)]); !errors.As(err, &op) || op.Op != "push" || op.Keys != len(x.keys) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	must(t, w.Push(godwit.WithFilters(t.Context(), filter.Skip{P: 0.9}), []godwit.Key{here}, []float32{1}))
	must(t, w.WaitSync(t.Context()))
	for k, want := range map[godwit.Key]float32{here: 2, there: 1, counts: 1} {
		if got := pulled(t, w, k)[0]; got != want {
			t.Errorf("the value of key %d is %v, want %v", k, got, want)
		}
	}
}

// squares is a filter of a user: it sends the squares, and nothing of odd keys.
type squares struct{}

func (squares) Name() string { return "squares" }
func (squares) Filter(b *godwit.FilterBatch) {
	for i, k := range b.Keys {
		for j, x := range b.Vec(i) {
			b.Vec(i)[j] = x * x
		}
		if k%2 == 1 {
			b.Drop(i)
		}
	}
	b.Encoding = godwit.Encoding{Coding: 0x6f, Step: 3} // there is none
}

func TestUsersHaveFiltersOfTheirOwnAndTablesWithoutAnyAreLeftAlone(t *testing.T) {
	m, err := godwit.NewModel(
		godwit.Table{Name: "a", Rows: 64, Dim: 1, Filters: []godwit.Filter{squares{}}},
		godwit.Table{Name: "b", Rows: 64, Dim: 3},
		godwit.Table{Name: "c", Rows: 64, Dim: 2, Filters: []godwit.Filter{squares{}, filter.BF16{}}})
	if err != nil {
		t.Fatal(err)
	}
	c := local(t, 3, Config{Model: m, Policy: placement.Static, Workers: 1})
	w := c.Nodes[0].Worker(0)
	var keys []godwit.Key
	for k := godwit.Key(0); m.Has(k); k++ {
		keys = append(keys, k)
	}
	rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	keys = append(keys, keys[:50]...)
	n, _ := m.Floats(keys)
	push := make([]float32, n)
	for i := range push {
		push[i] = 3
	}
	h, err := w.PushAsync(t.Context(), keys, push)
	must(t, err)
	for i := range push {
		push[i] = 1000 // it was taken
	}
	must(t, w.Wait(t.Context(), h))
	for i, k := range keys[:len(keys)-50] {
		want := float32(3)
		table, _ := m.Locate(k)
		if away := c.Nodes[0].proto.Homes.Home(k) != 0; away && table != 1 {
			if want = 9; k%2 == 1 {
				want = 0
			}
		}
		if i < 50 {
			want *= 2
		}
		for _, x := range pulled(t, w, k) {
			if x != want {
				t.Errorf("-seed %d: key %d of table %d is %v, want %v", *seed, k, table, x, want)
			}
		}
	}
}

// Under a storm of moves, all that was pushed arrives: what filters left of it
// goes with later pushes, at whatever node the key is then, or with WaitSync.
func TestFiltersLoseNothingUnderAStormOfMoves(t *testing.T) {
	steps := 300 * *scale
	for _, fs := range [][]godwit.Filter{
		{filter.FixedPoint(1), filter.Sparse{}},
		{filter.Skip{P: 0.5}, filter.BF16{}},
		{filter.Significant{Threshold: 40, Decay: 0.01}, filter.Fixed{Bytes: 2, Answers: true}, filter.Sparse{}},
	} {
		const rows = 40
		c := local(t, 3, Config{Model: filtered(t, rows, fs...), Policy: restless.Policy{}, Seed: *seed, Workers: 2})
		var pushed [6][2 * rows]int64
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			sum := &pushed[int(w.ID().Node)*2+w.ID().Local]
			keys, vals := make([]godwit.Key, 8), make([]float32, 16)
			for range steps {
				for i := range keys {
					keys[i] = godwit.Key(rng.IntN(rows))
					for j := range 2 {
						x := rng.IntN(61) - 20
						vals[2*i+j] = float32(x)
						sum[2*int(keys[i])+j] += int64(x)
					}
				}
				in := slices.Clone(vals)
				if err := w.Push(ctx, keys, vals); err != nil {
					return err
				}
				if !slices.Equal(in, vals) {
					return fmt.Errorf("a push of %v left %v", in, vals)
				}
				switch rng.IntN(8) {
				case 0:
					if err := w.Localize(ctx, keys[:3]); err != nil {
						return err
					}
				case 1:
					if err := w.Intent(keys[:3], w.Clock(), w.Clock()+3); err != nil {
						return err
					}
				case 2:
					if rng.IntN(10) == 0 {
						if err := w.WaitSync(ctx); err != nil {
							return err
						}
					}
				}
				w.Advance()
			}
			for _, step := range []func(context.Context) error{w.WaitSync, w.Barrier, w.WaitSync} {
				if err := step(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		var s Stats
		for _, n := range c.Nodes {
			s.Add(n.Stats())
		}
		for k := range godwit.Key(rows) {
			v := pulled(t, c.Nodes[k%3].Worker(0), k)
			for j, x := range v {
				var want int64
				for i := range pushed {
					want += pushed[i][2*int(k)+j]
				}
				_, exact := fs[1].(filter.Fixed) // pulls are rounded then
				if d := math.Abs(float64(x) - float64(want)); d > 0.1 && (!exact || d > 0.1+math.Abs(float64(want))/1000) {
					t.Errorf("-seed %d: %v: float %d of key %d is %v, %v was pushed", *seed, fs, j, k, x, want)
				}
			}
		}
		t.Logf("%v: %d bytes became %d, %d leftovers, %d moves, %d remote", fs, s.FilterIn, s.FilterOut, s.Leftovers, s.Moves, s.Remote)
		if s.FilterOut >= s.FilterIn || s.Leftovers == 0 || s.Moves < 50 || s.Remote < uint64(steps) {
			t.Errorf("%v: %d bytes became %d, %d leftovers, %d moves, %d remote: the test is vacuous", fs, s.FilterIn, s.FilterOut, s.Leftovers, s.Moves, s.Remote)
		}
	}
}
