package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/history"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/train"
)

// This file has cuts made amid a storm, and judges their rows: they are vector clocks, which
// must show just what each worker had pushed when it crossed.

// DidCuts says what the cuts of a storm met.
type DidCuts struct {
	Cuts   int // of nodes
	Rows   int // that were handed over
	Kept   int // rows of which copies were kept
	Spared int // rows that cuts of the changed rows did not hand over
}

// OnCut makes the worker a godwit.Cutter.
func (w *worker) OnCut(f func(cut uint64)) { w.Worker.(godwit.Cutter).OnCut(f) }

// Rest is that of a godwit.Cutter.
func (w *worker) Rest() { w.Worker.(godwit.Cutter).Rest() }

// stormCuts are the cuts of a storm.
type stormCuts struct {
	now  int // grows with each event
	made map[uint64]*stormCut
	sets map[godwit.Key]map[int]*stormSet // by their numbers
	did  DidCuts
}

type stormCut struct {
	which node.Which
	at    map[int]boundary // by worker
	rows  map[godwit.Key][]float32
}

// A boundary is what a worker had done when it crossed.
type boundary struct {
	now    int
	pushed map[godwit.Key]float32
	// Of bounded storms: the moments of the steps before and behind the boundary.
	before, behind history.Moment
}

type stormSet struct{ by, began, done int }

func newStormCuts() *stormCuts {
	return &stormCuts{made: map[uint64]*stormCut{}, sets: map[godwit.Key]map[int]*stormSet{}}
}

func (c *stormCuts) cut(number uint64) *stormCut {
	if c.made[number] == nil {
		c.made[number] = &stormCut{at: map[int]boundary{}, rows: map[godwit.Key][]float32{}}
	}
	return c.made[number]
}

// crossed takes note that the worker crosses into a cut.
func (x *stormWorker) crossed(cut uint64) {
	x.cuts.now++
	b := boundary{now: x.cuts.now, pushed: maps.Clone(x.pushed)}
	if x.bounds != nil {
		b.before, b.behind = x.bounds.step(x.id)
	}
	x.cuts.cut(cut).at[x.id] = b
}

// judgeMoment sees that all boundaries of a cut are at one clock: no step before it is as late as one behind it.
func (c *stormCut) judgeMoment() error {
	for i, x := range c.at {
		for j, y := range c.at {
			if !x.before.Less(y.behind) {
				return fmt.Errorf("worker %d was before the boundary at %+v, worker %d behind it at %+v", i, x.before, j, y.behind)
			}
		}
	}
	return nil
}

// set takes note of a Set that begins, setDone of its end.
func (c *stormCuts) set(worker int, k godwit.Key, j int) {
	if c == nil {
		return
	}
	c.now++
	if c.sets[k] == nil {
		c.sets[k] = map[int]*stormSet{}
	}
	c.sets[k][j] = &stormSet{by: worker, began: c.now}
}

func (c *stormCuts) setDone(k godwit.Key, j int) {
	if c != nil {
		c.now++
		c.sets[k][j].done = c.now
	}
}

// program is what a node does in a storm.
func (s *storm) program(ctx context.Context, env train.Env) error {
	work := func() error {
		return env.Each(ctx, func(ctx context.Context, _ int, w godwit.Worker) error { return s.work(ctx, w) })
	}
	if s.cuts == nil {
		return work()
	}
	var errs [2]error
	env.Fork(2, func(i int) {
		if i == 0 {
			errs[0] = work()
		} else {
			errs[1] = s.makeCuts(ctx, env.Node)
		}
	})
	if errs[0] != nil {
		return errs[0]
	}
	return errs[1]
}

// makeCuts makes the cuts of a node. Any node asks first.
func (s *storm) makeCuts(ctx context.Context, id int) error {
	n, rng := s.c.Node(id), rand.New(rand.NewPCG(s.seed, 0xc07+uint64(id)))
	for i := range s.config.Cuts {
		number, which := uint64(10*i+1), node.Which(s.seed>>i&1)
		world{s.c, s.c.hosts[id]}.Sleep(time.Duration(rng.Int64N(20_000_000)), nil, nil)
		cut := s.cuts.cut(number)
		cut.which = which
		rows := cut.rows
		var wrong error
		did, err := n.Cut(ctx, number, which, func(table int, nos []uint64, floats []float32) error {
			world{s.c, s.c.hosts[id]}.Sleep(time.Duration(rng.Int64N(200_000)), nil, nil)
			length := s.model.TableRowLen(table)
			for j, no := range nos {
				k := s.model.Key(table, no)
				if rows[k] != nil {
					wrong = fmt.Errorf("sim: cut %d has key %d twice", number, k)
				}
				rows[k] = slices.Clone(floats[j*length : (j+1)*length])
			}
			return nil
		})
		if err == nil {
			err = wrong
		}
		if err != nil {
			return err
		}
		s.cuts.add(did)
	}
	return nil
}

func (c *stormCuts) add(did node.CutStats) {
	c.did.Cuts++
	c.did.Rows += int(did.Rows)
	c.did.Kept += int(did.Kept)
}

// judge looks at all cuts when the storm is over. Those of the changed rows it looks at together with the
// ones before.
func (c *stormCuts) judge(s *storm) error {
	if c == nil {
		return nil
	}
	rows := map[godwit.Key][]float32{}
	for _, number := range slices.Sorted(maps.Keys(c.made)) {
		cut := c.made[number]
		if cut.which == node.WholeCut {
			clear(rows)
		}
		maps.Copy(rows, cut.rows)
		c.did.Spared += len(rows) - len(cut.rows)
		cut.rows = rows
		if want := s.config.Nodes * s.config.Workers; len(cut.at) != want {
			return fmt.Errorf("sim: %d of %d workers crossed into cut %d", len(cut.at), want, number)
		}
		if s.bounds != nil && s.bounds.any() { // else workers cross anywhere
			if err := cut.judgeMoment(); err != nil {
				return fmt.Errorf("sim: cut %d: %w", number, err)
			}
		}
		for k := godwit.Key(0); uint64(k) < s.clocks; k++ {
			if err := c.judgeRow(s, cut, k); err != nil {
				return fmt.Errorf("sim: cut %d, key %d: %w", number, k, err)
			}
		}
	}
	return nil
}

// judgeRow looks at a row of a cut.
func (c *stormCuts) judgeRow(s *storm, cut *stormCut, k godwit.Key) error {
	table, _ := s.model.Locate(k)
	row := cut.rows[k]
	if row == nil {
		row = make([]float32, s.model.RowLen(k))
	}
	value := slices.Clone(row[:s.model.Dim(k)])
	if q, ok := s.model.Table(table).Rule.(godwit.Querier); ok {
		q.Query(value, row[:len(value)], row[len(value):])
	}
	j := 0
	if table == setTable {
		var err error
		if j, err = c.judgeSet(cut, k, value); err != nil {
			return err
		}
	}
	var all float32
	for w, at := range cut.at {
		had := at.pushed[k]
		got := value[w] - float32(history.Era*j)
		all += had
		if j == 0 && got != had || got < 0 || got > had {
			return fmt.Errorf("row %v after set %d has %v pushes of worker %d, which had made %v", value, j, got, w, had)
		}
	}
	if counts := len(row) > len(value); counts && !s.held(k) && row[len(row)-1] != all {
		return fmt.Errorf("row %v counts %v pushes, there were %v", row, row[len(row)-1], all)
	}
	return nil
}

// judgeSet returns which set a row shows. It must be from before the cut, and none from before
// the cut may have come after it.
func (c *stormCuts) judgeSet(cut *stormCut, k godwit.Key, value []float32) (int, error) {
	j := int(value[0]) / history.Era
	shown := &stormSet{}
	if j != 0 {
		if shown = c.sets[k][j]; shown == nil || shown.began > cut.at[shown.by].now {
			return j, fmt.Errorf("row %v shows set %d, which is not from before the cut", value, j)
		}
	}
	for i, x := range c.sets[k] {
		if i != j && x.done != 0 && x.done < cut.at[x.by].now && (j == 0 || shown.done != 0 && shown.done < x.began) {
			return j, fmt.Errorf("row %v shows set %d, set %d came after it, before the cut", value, j, i)
		}
	}
	return j, nil
}
