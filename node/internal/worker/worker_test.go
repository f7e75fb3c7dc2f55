package worker

import (
	"errors"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/cut"
	"github.com/godwit-ps/godwit/node/internal/filtering"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/planner"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/node/internal/scan"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"

	"github.com/godwit-ps/godwit/filter"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

// group returns the workers of a node that is alone.
func group(t *testing.T, workers int, tables ...godwit.Table) *Group {
	return groupOf(t, 1, workers, tables...)
}

// groupOf returns the workers of node 0 of some nodes, none of which is connected.
func groupOf(t *testing.T, nodes, workers int, tables ...godwit.Table) *Group {
	return groupIn(t, host.Real(), placement.Static, nodes, workers, tables...)
}

func groupIn(t *testing.T, world host.World, policy placement.Policy, nodes, workers int, tables ...godwit.Table) *Group {
	cfg := roomtest.Protocol(t, 0, nodes, policy, 4, tables...)
	h, bell, clocks := host.New(world), host.NewBell(), tick.NewClocks(0, workers, 0)
	ls := link.New(h, 0, nodes, 1, host.Usual, filter.Compress{}, bell)
	rows, err := shards.New(cfg, 0, store.HeapAlloc, bell)
	roomtest.Must(t, err)
	g, err := New(Config{Host: h, Model: cfg.Model, Links: ls, Rows: rows, Ops: operation.New(cfg.Model, 0, workers, host.Usual), Clocks: clocks,
		Planner: planner.New(h, rows, ls, host.NewBudget(workers, 2), clocks, false, nil), Filters: filtering.New(cfg.Model, 1, false),
		Questions: scan.NewQuestions(h, cfg, ls), Policy: cfg.Policy, Cuts: cut.New(cut.Config{Host: h, Links: ls})})
	roomtest.Must(t, err)
	return g
}

// What is here is served without an operation, and counted by its place.
func TestACallOfKeysThatAreHereNeedsNobody(t *testing.T) {
	g := group(t, 2, godwit.Table{Name: "a", Rows: 10, Dim: 2}, godwit.Table{Name: "b", Rows: 5, Dim: 1})
	keys := []godwit.Key{3, 12, 3}
	v := make([]float32, 5)
	roomtest.Must(t, g.Of(0).Push(t.Context(), keys, []float32{1, 2, 3, 10, 20}))
	roomtest.Must(t, g.Of(1).Pull(t.Context(), keys, v))
	for i, want := range []float32{11, 22, 3, 11, 22} {
		if v[i] != want {
			t.Fatalf("pulled %v", v)
		}
	}
	if c := g.Counts(); c.Direct.Local != 6 || c.Calls != 2 || c.Slow != 0 || c.Direct.Remote+c.Direct.Queued+c.Direct.Replica != 0 {
		t.Errorf("counts %+v", c)
	}
	if err := g.Resting(); err != nil {
		t.Error(err)
	}
}

// An error names who did not answer, and never the worker's own node.
func TestNobodyIsBlamedForAKeyThatIsHere(t *testing.T) {
	g := groupOf(t, 2, 1, godwit.Table{Name: "a", Rows: 1000, Dim: 1})
	blamed := map[godwit.NodeID]int{}
	for k := range godwit.Key(1000) {
		blamed[g.blame(k)]++
	}
	if blamed[godwit.NoNode] == 0 || blamed[1] == 0 || len(blamed) != 2 {
		t.Errorf("of 1000 keys with homes at two nodes, these are blamed so often at node 0: %v", blamed)
	}
}

// A stepping world's time goes on by a step with each look at it.
type stepping struct {
	host.World
	now, step int64
}

func (w *stepping) Now() int64 {
	w.now += w.step
	return w.now
}

// What a worker does for keys that are elsewhere makes no step long: else it would go on to fetch values because it fetches them.
func TestWhatIsDoneForKeysElsewhereMakesNoStepLong(t *testing.T) {
	const short, sending = 4e5, 2e6
	for name, x := range map[string]struct {
		compute       int64
		push, fetches bool // in each step, of a key elsewhere
		long          bool
	}{
		"short":             {compute: short},
		"long":              {compute: short + sending, long: true},
		"short, and pushes": {compute: short, push: true},
		"short, and asks":   {compute: short, fetches: true},
	} {
		world := &stepping{World: host.Real(), now: 1, step: 1}
		g := groupIn(t, world, placement.Adaptive, 2, 1, godwit.Table{Name: "a", Rows: 10_000, Dim: 1})
		g.Links.Imagine(1, func() { world.now += sending })
		w, key := g.Of(0), godwit.Key(0)
		next := func() []godwit.Key {
			for key++; g.blame(key) == godwit.NoNode; key++ {
			}
			return []godwit.Key{key}
		}
		push := func(keys []godwit.Key) (asking int64) {
			before := w.count.asking
			_, err := w.PushAsync(t.Context(), keys, []float32{1})
			roomtest.Must(t, err)
			return w.count.asking - before
		}
		for range 10 * 8 {
			if x.push && push(next()) < sending {
				t.Fatalf("%s: to send a push took no time for a key elsewhere", name)
			}
			if x.fetches {
				roomtest.Must(t, w.Intent(next(), w.Clock()+1, w.Clock()+2))
			}
			world.now += x.compute
			w.Advance()
		}
		before := w.fetcher.Fetched()
		roomtest.Must(t, w.Intent(next(), w.Clock()+1, w.Clock()+2))
		if long := w.fetcher.Fetched() > before; long != x.long {
			t.Errorf("%s: steps are long: %v", name, long)
		}
	}
}

// A call that cannot be is refused before anything of it is done.
func TestACallThatCannotBeIsRefused(t *testing.T) {
	g := group(t, 1, godwit.Table{Name: "a", Rows: 10, Dim: 2})
	w := g.Of(0)
	for what, x := range map[string]struct {
		keys []godwit.Key
		vals int
		want error
	}{
		"a key that is none": {[]godwit.Key{1, 10}, 4, godwit.ErrKeyRange},
		"too few values":     {[]godwit.Key{1, 2}, 3, godwit.ErrLength},
		"too many values":    {[]godwit.Key{1, 2}, 5, godwit.ErrLength},
	} {
		ones := make([]float32, x.vals)
		for i := range ones {
			ones[i] = 1
		}
		var op *godwit.OpError
		if err := w.Push(t.Context(), x.keys, ones); !errors.Is(err, x.want) || !errors.As(err, &op) || op.Worker != w.ID() || op.Keys != 2 {
			t.Errorf("%s: %v, want %v", what, err, x.want)
		}
	}
	v := make([]float32, 2)
	roomtest.Must(t, w.Pull(t.Context(), []godwit.Key{1}, v))
	if v[0] != 0 {
		t.Errorf("a push that was refused changed a value to %v", v)
	}
}

// Offsets of an operation have 32 bits: what does not fit is refused, not cut off.
func TestACallOfTooManyFloatsIsRefused(t *testing.T) {
	w := group(t, 1, godwit.Table{Name: "a", Rows: 10, Dim: 2}).Of(0)
	err := w.check("pull", []godwit.Key{1}, maxFloats+1)
	if !errors.Is(err, godwit.ErrLength) || !strings.Contains(err.Error(), "one call takes at most 4294967295") {
		t.Errorf("a buffer of 2³² floats: %v", err)
	}
	if err = w.check("pull", []godwit.Key{1}, maxFloats); !errors.Is(err, godwit.ErrLength) || strings.Contains(err.Error(), "one call takes") {
		t.Errorf("a buffer of one float less, and too long for the keys: %v", err)
	}
}

// A value that is here is read without a call that could wait, and nothing else is.
func TestPullIfLocalReadsWhatWasPushed(t *testing.T) {
	g := group(t, 1, godwit.Table{Name: "a", Rows: 10, Dim: 1})
	w := g.Of(0)
	for range 3 {
		roomtest.Must(t, w.Push(t.Context(), []godwit.Key{4}, []float32{0.5}))
	}
	v := make([]float32, 1)
	if !w.PullIfLocal(4, v) || v[0] != 1.5 {
		t.Errorf("the value is %v", v)
	}
	if w.PullIfLocal(4, make([]float32, 2)) || w.PullIfLocal(10, v) {
		t.Error("a value of another length, or of no key, is local")
	}
}

// Calls of keys that are here allocate nothing.
func TestLocalCallsAllocateNothing(t *testing.T) {
	g := group(t, 1, godwit.Table{Name: "a", Rows: 1000, Dim: 4})
	w, ctx := g.Of(0), t.Context()
	keys, vals := make([]godwit.Key, 100), make([]float32, 400)
	for i := range keys {
		keys[i] = godwit.Key(7 * i)
	}
	call := func() {
		_ = w.Push(ctx, keys, vals)
		_ = w.Pull(ctx, keys, vals)
		w.PullIfLocal(keys[0], vals[:4])
	}
	call()
	if n := testing.AllocsPerRun(100, call); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// As many keys are issued at a time, at the same cost, where a model has one table as where it has several alike.
func TestWhatIsIssuedAtATimeIsTheSameForOneTable(t *testing.T) {
	one := group(t, 1, godwit.Table{Name: "a", Rows: 1000, Dim: 3, Rule: optim.AdaGrad{LR: 0.1}}).Of(0)
	two := group(t, 1, godwit.Table{Name: "a", Rows: 500, Dim: 3, Rule: optim.AdaGrad{LR: 0.1}}, godwit.Table{Name: "b", Rows: 500, Dim: 3, Rule: optim.AdaGrad{LR: 0.1}}).Of(0)
	keys := make([]godwit.Key, 200)
	var miss []int
	for i := range keys {
		keys[i] = godwit.Key(5 * i)
		miss = append(miss, i, 3*i)
	}
	one.rows.Miss, two.rows.Miss = miss, miss
	for _, kind := range []wire.Kind{wire.Pull, wire.Push} {
		for _, room := range []int64{0, 1, 8 * link.CostOf(3), 8 * link.CostOf(6), 8*link.CostOf(6) + 8, 100 * link.CostOf(6), 1 << 30} {
			for _, m := range []int{0, 2, 398, 300} {
				one.ops.Room, two.ops.Room = room, room
				next, cost := one.some(kind, keys, m)
				if n, c := two.some(kind, keys, m); next != n || cost != c {
					t.Errorf("%v, room for %d bytes, from %d of %d: up to %d for %d bytes, and up to %d for %d where there are two tables", kind, room, m, len(miss), next, cost, n, c)
				}
			}
		}
	}
}
