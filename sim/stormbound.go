package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/history"
)

// stormBounds are what the tables of a storm promise about staleness, and what
// judges it. Draws are of their own, so that a storm is otherwise that of its seed.
type stormBounds struct {
	rng    *rand.Rand
	clocks *history.Clocks
	stale  []godwit.Bound // by table
	at     []int          // steps before which all workers meet
}

func newStormBounds(seed uint64, workers int) *stormBounds {
	b := &stormBounds{rng: rand.New(rand.NewPCG(seed, 0xb0d)), clocks: history.NewClocks(workers)}
	for range b.rng.IntN(3) {
		b.at = append(b.at, 1+b.rng.IntN(49))
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
	}
}

func (b *stormBounds) meets(step int) bool { return slices.Contains(b.at, step) }

func (b *stormBounds) String() string {
	var s []string
	for _, x := range b.stale {
		s = append(s, x.String())
	}
	return "staleness " + strings.Join(s, " ")
}

func (x *stormWorker) barrier(ctx context.Context) error {
	if x.bounds != nil {
		x.bounds.clocks.Barrier(x.id)
	}
	return x.w.Barrier(ctx)
}

// owed returns, for each table, the moment before which a read that begins now
// must contain all pushes, as bounded as the tightest of the keys' tables.
func (x *stormWorker) owed(keys []godwit.Key) (m history.Moment) {
	if x.bounds == nil {
		return m
	}
	for _, k := range keys {
		t, _ := x.model.Locate(k)
		if s, ok := x.bounds.stale[t].Clocks(); ok {
			if o := x.bounds.clocks.Now(x.id).Back(int(s)); m.Less(o) {
				m = o
			}
		}
	}
	return m
}

// judge judges what a read returned that was owed all pushes before a moment.
func (x *stormWorker) judge(k godwit.Key, v []float32, owed history.Moment) error {
	if x.bounds == nil {
		return nil
	}
	t, _ := x.model.Locate(k)
	if t == setTable || x.bounds.stale[t] == godwit.Eventual {
		return nil
	}
	if err := x.bounds.clocks.Read(k, v, owed); err != nil {
		return fmt.Errorf("worker %d, at %+v, staleness %v: %w", x.id, x.bounds.clocks.Now(x.id), x.bounds.stale[t], err)
	}
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
	o := &operation{keys: keys, vals: x.values(keys), after: x.w.Clock() + godwit.Clock(ahead)}
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
		return x.judge(keys[i], v, owed)
	}
	var err error
	o.h, err = x.w.PullAfter(ctx, o.after, keys, o.vals)
	return x.begun(ctx, o, err)
}
