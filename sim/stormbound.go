package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/history"
	"github.com/godwit-ps/godwit/internal/virtual"
)

// stormBounds are what the tables of a storm promise about staleness, and what
// judges it. Draws are of their own, so that a storm is otherwise that of its seed.
type stormBounds struct {
	rng    *rand.Rand
	clocks *history.Clocks
	stale  []godwit.Bound // by table, at first
	at     []int          // steps before which all workers meet
	behind uint64         // barriers that the workers count as behind them at first

	before []history.Moment // by worker: of its step before

	over     [][]godwit.Bound // by table: the bounds so far; while one changes, the looser one
	changing bool
	changes  int
}

func newStormBounds(seed uint64, workers int) *stormBounds {
	b := &stormBounds{rng: rand.New(rand.NewPCG(seed, 0xb0d)), clocks: history.NewClocks(workers)}
	for range workers {
		b.before = append(b.before, history.Moment{Barriers: -1})
	}
	for range b.rng.IntN(3) {
		b.at = append(b.at, 1+b.rng.IntN(49))
	}
	// Eras are counted modulo 2²⁴: some storms begin shortly before the order of
	// their numbers turns over, half way and at the end.
	switch rng := rand.New(rand.NewPCG(seed, 0xe4a)); rng.IntN(4) {
	case 0:
		b.behind = 1<<24 - rng.Uint64N(4)
	case 1:
		b.behind = 1<<23 - rng.Uint64N(4)
	}
	return b
}

// bind draws the bounds. A table in four has none.
func (b *stormBounds) bind(tables []godwit.Table) {
	for i := range tables {
		if b.rng.IntN(4) > 0 {
			tables[i].Staleness = godwit.Within(b.rng.IntN(4))
		}
		if b.rng.IntN(2) == 0 {
			tables[i].Window = godwit.Within(b.rng.IntN(3))
		}
		b.stale = append(b.stale, tables[i].Staleness)
		b.over = append(b.over, []godwit.Bound{tables[i].Staleness})
	}
}

// any reports whether a table bounds staleness, or did at first.
func (b *stormBounds) any() bool {
	return slices.ContainsFunc(b.stale, func(x godwit.Bound) bool { return x != godwit.Eventual })
}

// goOn notes that a worker is about to go to its next moment.
func (b *stormBounds) goOn(worker int, how func(*history.Clocks, int)) {
	was := b.clocks.Now(worker)
	if how(b.clocks, worker); was.Less(b.clocks.Now(worker)) {
		b.before[worker] = was
	}
}

// step returns the moments of the steps before a worker's step boundary and behind it.
func (b *stormBounds) step(worker int) (before, behind history.Moment) {
	return b.before[worker], b.clocks.Now(worker)
}

func (b *stormBounds) meets(step int) bool { return slices.Contains(b.at, step) }

func (b *stormBounds) String() string {
	var s []string
	for _, x := range b.stale {
		s = append(s, x.String())
	}
	text := "staleness " + strings.Join(s, " ")
	if b.behind > 0 {
		text += fmt.Sprintf(" after %d barriers", b.behind)
	}
	return text
}

// A reading is when a read of bounded tables began.
type reading struct {
	now   history.Moment
	since []int // by table: the index in stormBounds.over
}

func (x *stormWorker) moment() (r reading) {
	if x.bounds == nil {
		return r
	}
	r.now = x.bounds.clocks.Now(x.id)
	for _, o := range x.bounds.over {
		r.since = append(r.since, len(o)-1)
	}
	return r
}

// judge judges what a read returned: by the loosest bound that its table had
// since it began.
func (x *stormWorker) judge(k godwit.Key, v []float32, r reading) error {
	if x.bounds == nil {
		return nil
	}
	t, _ := x.model.Locate(k)
	b := slices.MaxFunc(x.bounds.over[t][r.since[t]:], tighter)
	if s, ok := b.Clocks(); ok {
		return x.judgeOwed(k, v, r.now.Back(int(s)))
	}
	return nil
}

// tighter compares bounds: the looser is the greater.
func tighter(a, b godwit.Bound) int {
	clocks := func(b godwit.Bound) godwit.Clock {
		if s, ok := b.Clocks(); ok {
			return s
		}
		return godwit.Forever
	}
	return cmp.Compare(clocks(a), clocks(b))
}

// judgeOwed judges a read that must contain all pushes before a moment.
func (x *stormWorker) judgeOwed(k godwit.Key, v []float32, owed history.Moment) error {
	if t, _ := x.model.Locate(k); t == setTable {
		return nil
	}
	if err := x.bounds.clocks.Read(k, v, owed); err != nil {
		return fmt.Errorf("worker %d, at %+v: %w", x.id, x.bounds.clocks.Now(x.id), err)
	}
	return nil
}

// rebind changes the bound of a table, on all nodes, unless another worker does.
func (x *stormWorker) rebind(ctx context.Context) error {
	b := x.bounds
	t := x.rng.IntN(len(b.stale))
	if b.changing || b.stale[t] == godwit.Eventual {
		return nil
	}
	to := godwit.Within(x.rng.IntN(4))
	if x.rng.IntN(4) == 0 {
		to = godwit.Eventual
	}
	b.changing = true
	was := b.over[t][len(b.over[t])-1]
	b.over[t] = append(b.over[t], slices.MaxFunc([]godwit.Bound{was, to}, tighter))
	if err := x.c.Node(x.node).SetStaleness(ctx, t, to); err != nil {
		return err
	}
	b.over[t] = append(b.over[t], to)
	b.changing = false
	b.changes++
	return nil
}

// pullAfter asks for what others may still have to make.
func (x *stormWorker) pullAfter(ctx context.Context, keys []godwit.Key) error {
	keys = slices.DeleteFunc(keys, func(k godwit.Key) bool {
		t, _ := x.model.Locate(k)
		return x.bounds.stale[t] == godwit.Eventual
	})
	ahead := x.rng.IntN(4) - 1
	now := x.bounds.clocks.Now(x.id)
	o := &operation{keys: keys, vals: x.values(keys), gave: &x.cancelled.Pulls, after: x.w.Clock() + godwit.Clock(ahead)}
	owed := history.Moment{Barriers: now.Barriers, Clock: max(now.Clock+ahead, 0)}
	var rs []*history.Reading
	for _, k := range keys {
		rs = append(rs, x.history.ReadIssued(x.id, k).Late())
	}
	o.done = func(i, off int) error {
		v := o.vals[off : off+x.model.Dim(keys[i])]
		if err := x.history.Read(rs[i], v); err != nil {
			return err
		}
		return x.judgeOwed(keys[i], v, owed)
	}
	err := x.begin(ctx, o, func(ctx context.Context) (godwit.Handle, error) { return x.w.PullAfter(ctx, o.after, keys, o.vals) })
	if x.limits != (virtual.Limits{}) && errors.Is(err, godwit.ErrFull) {
		return nil // of what is asked ahead, nobody waits for room
	}
	return err
}
