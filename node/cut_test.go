package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

// cutModel has a table of each kind of rule: with and without state, with a way to merge of its own, not
// additive, with queries.
func cutModel(t testing.TB) *godwit.Model {
	init := godwit.Uniform{Lo: -1, Hi: 1}
	return modelOf(t,
		godwit.Table{Name: "add", Rows: 300, Dim: 3, Init: init, Hot: first},
		godwit.Table{Name: "adagrad", Rows: 200, Dim: 5, Rule: optim.AdaGrad{LR: 0.1}, Init: init, Hot: first},
		godwit.Table{Name: "max", Rows: 100, Dim: 2, Rule: optim.Max{}, Hot: first},
		godwit.Table{Name: "ftrl", Rows: 100, Dim: 1, Rule: optim.FTRL{LR: 0.1, Beta: 1, L1: 0.1}, Hot: first},
	)
}

// A saved is the rows of a cut, by table and row.
type saved map[[2]uint64][]float32

// cutAll has all nodes of a cluster make a cut.
func cutAll(t testing.TB, c *Cluster, cut uint64, which Which) saved {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var mu sync.Mutex
	rows := saved{}
	errs := make([]error, len(c.Nodes))
	var wg sync.WaitGroup
	for i, n := range c.Nodes {
		wg.Go(func() {
			_, errs[i] = n.Cut(ctx, cut, which, func(table int, nos []uint64, floats []float32) error {
				mu.Lock()
				defer mu.Unlock()
				length := n.cfg.Model.TableRowLen(table)
				for j, no := range nos {
					at := [2]uint64{uint64(table), no}
					if rows[at] != nil {
						return fmt.Errorf("row %d of table %d comes twice", no, table)
					}
					rows[at] = slices.Clone(floats[j*length : (j+1)*length])
				}
				return nil
			})
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("node %d: %v", i, err)
		}
	}
	return rows
}

// restoreAll gives all nodes all rows, in any order, as saved.
func restoreAll(t testing.TB, c *Cluster, rows saved) {
	t.Helper()
	restored := 0
	for at, row := range rows {
		for _, n := range c.Nodes {
			k, err := n.Restore(int(at[0]), []uint64{at[1]}, row, true)
			if err != nil {
				t.Fatal(err)
			}
			restored += k
		}
	}
	if restored != len(rows) {
		t.Fatalf("%d of %d rows were restored", restored, len(rows))
	}
}

// same compares two cuts bit for bit.
func same(t testing.TB, what string, got, want saved) {
	t.Helper()
	if !maps.EqualFunc(got, want, slices.Equal) {
		for at, row := range want {
			if !slices.Equal(got[at], row) {
				t.Fatalf("%s: row %d of table %d is %v, want %v", what, at[1], at[0], got[at], row)
			}
		}
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
}

// What was saved is restored at another number of nodes, values and state, bit for bit: before
// anything is trained, and after keys moved and were replicated. The same holds for a cut of all rows together with
// one of those that changed afterwards, also where the first was restored.
func TestRowsAreRestoredAtAnyNumberOfNodes(t *testing.T) {
	variants(t, fewer(1, 3), func(t *testing.T, nodes int, cfg Config) {
		cfg.Model = cutModel(t)
		m := cfg.Model
		c := local(t, nodes, cfg)
		train := func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			defer w.Finish()
			for range 60 {
				k := []godwit.Key{godwit.Key(rng.Uint64N(m.Keys()))}
				if err := announce(w, rng, k); err != nil {
					return err
				}
				push := valuesOf(m, k)
				for i := range push {
					push[i] = rng.Float32() - 0.5
				}
				if err := w.Push(ctx, k, push); err != nil {
					return err
				}
				w.Advance()
			}
			return everywhere(ctx, w)
		}
		each(t, c, train)
		rows := cutAll(t, c, 1, WholeCut)
		addChanged(t, "trained further", c, train, rows)
		if len(rows) == 0 || len(rows) >= int(m.Keys()) && !cfg.Policy.Everywhere(false) {
			t.Fatalf("%d of %d rows were written, want those that were touched", len(rows), m.Keys())
		}
		for _, nodes := range []int{1, 4, 3} {
			c := local(t, nodes, cfg)
			restoreAll(t, c, rows)
			each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
				defer w.Finish()
				if err := everywhere(ctx, w); err != nil {
					return err
				}
				for range 50 { // moves and replicas, but no changes
					k := []godwit.Key{godwit.Key(rng.Uint64N(m.Keys()))}
					if _, at := rows[rowOf(m, k[0])]; !at {
						continue
					}
					if err := w.Intent(k, w.Clock(), w.Clock()+3); err != nil {
						return err
					}
					if err := w.Pull(ctx, k, valuesOf(m, k)); err != nil {
						return err
					}
					w.Advance()
				}
				return everywhere(ctx, w)
			})
			got := cutAll(t, c, 2, WholeCut)
			all := maps.Clone(got)
			if cfg.Policy.Everywhere(true) { // policies that ask for rows before the run begins
				maps.DeleteFunc(got, func(at [2]uint64, _ []float32) bool { return rows[at] == nil })
			}
			same(t, fmt.Sprintf("%d nodes", nodes), got, rows)
			addChanged(t, fmt.Sprintf("restored at %d nodes, and trained", nodes), c, train, all)
		}
	})
}

// addChanged has workers train, makes a cut of the changed rows, and adds it to the rows of cuts before: as one
// of all rows has them. Rows may come into use meanwhile, by intents that have become due.
func addChanged(t *testing.T, what string, c *Cluster, train func(context.Context, godwit.Worker, *rand.Rand) error, rows saved) {
	t.Helper()
	each(t, c, train)
	changed := cutAll(t, c, 3, ChangedCut)
	if len(changed) == 0 {
		t.Errorf("%s: no row has changed", what)
	}
	maps.Copy(rows, changed)
	for at := range cutAll(t, c, 4, ChangedCut) {
		if rows[at] != nil {
			t.Errorf("%s: row %d of table %d has changed since a moment ago", what, at[1], at[0])
		}
	}
	whole := cutAll(t, c, 5, WholeCut)
	maps.DeleteFunc(whole, func(at [2]uint64, _ []float32) bool { return rows[at] == nil })
	same(t, what, whole, rows)
}

// Keys that were announced go on moving while workers do nothing, and every one is in a cut all the same.
func TestACutHasEachRowOnceThoughKeysWereMoving(t *testing.T) {
	const rows, steps = 3000, 40
	m := modelOf(t, godwit.Table{Name: "a", Rows: rows, Dim: 4})
	c := local(t, 3, Config{Model: m, Workers: 1, Policy: placement.AdaPM, Seed: 1})
	all := make([]godwit.Key, rows)
	for i := range all {
		all[i] = godwit.Key(i)
	}
	each(t, c, func(ctx context.Context, w godwit.Worker, _ *rand.Rand) error {
		return w.Push(ctx, all, valuesOf(m, all))
	})
	moves := uint64(0)
	for cut := range uint64(often(25)) {
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			for range steps {
				var ks []godwit.Key
				for range 100 {
					ks = append(ks, godwit.Key(rng.Uint64N(rows)))
				}
				slices.Sort(ks)
				ks = slices.Compact(ks)
				if err := w.Intent(ks, w.Clock(), w.Clock()+1); err != nil {
					return err
				}
				if err := w.Push(ctx, ks, valuesOf(m, ks)); err != nil {
					return err
				}
				w.Advance()
			}
			part := all[rng.IntN(rows/2):]
			if err := w.Intent(part, w.Clock(), w.Clock()+1); err != nil { // due at once
				return err
			}
			defer w.(godwit.Cutter).Rest()
			return everywhere(ctx, w)
		})
		if got := cutAll(t, c, cut+1, WholeCut); len(got) != rows {
			t.Fatalf("-seed %d: cut %d has %d rows of %d", *seed, cut+1, len(got), rows)
		}
		for _, n := range c.Nodes {
			moves += n.Stats().Moves
		}
		each(t, c, func(ctx context.Context, w godwit.Worker, _ *rand.Rand) error {
			w.Advance()
			w.Advance()
			return everywhere(ctx, w)
		})
	}
	if moves == 0 {
		t.Error("no key moved: the test is vacuous")
	}
}

// Cuts are made while workers push as fast as they can and keys move: they have what each worker
// had pushed when it crossed, and nothing else.
func TestCutsAreMadeWhileWorkersWork(t *testing.T) {
	const cuts, keyCount = 4, 12
	kept := uint64(0)
	variants(t, []int{1, 3}, func(t *testing.T, nodes int, cfg Config) {
		workers := nodes * cfg.Workers
		cfg.Model = modelOf(t, godwit.Table{Name: "t", Rows: keyCount, Dim: workers, Hot: first})
		c := local(t, nodes, cfg)
		at := make([]map[uint64][]float32, workers) // by worker and cut: pushes by key
		pushed := make([][]float32, workers)
		for _, n := range c.Nodes {
			for _, w := range n.Workers() {
				id := int(w.ID().Node)*cfg.Workers + w.ID().Local
				at[id], pushed[id] = map[uint64][]float32{}, make([]float32, keyCount)
				w.(godwit.Cutter).OnCut(func(cut uint64) { at[id][cut] = slices.Clone(pushed[id]) })
			}
		}
		var over atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			defer over.Store(true)
			for i := range cuts {
				rows := cutAll(t, c, uint64(i+1), WholeCut)
				for k := range uint64(keyCount) {
					row := rows[[2]uint64{0, k}]
					if row == nil {
						row = make([]float32, workers)
					}
					for w := range row {
						if want := at[w][uint64(i+1)][k]; row[w] != want {
							t.Errorf("cut %d, row %d has %v pushes of worker %d, want %v", i+1, k, row[w], w, want)
							return
						}
					}
				}
			}
		})
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			defer w.Finish()
			id := int(w.ID().Node)*cfg.Workers + w.ID().Local
			one := make([]float32, workers)
			one[id] = 1
			for !over.Load() {
				k := []godwit.Key{godwit.Key(rng.IntN(keyCount))}
				if err := announce(w, rng, k); err != nil {
					return err
				}
				pushed[id][k[0]]++
				h, err := w.PushAsync(ctx, k, one)
				if err != nil {
					return err
				}
				if rng.IntN(3) == 0 {
					if err := w.Wait(ctx, h); err != nil {
						return err
					}
				}
				w.Advance()
			}
			return everywhere(ctx, w)
		})
		wg.Wait()
		for _, n := range c.Nodes {
			kept += n.rows.Totals().Kept
		}
	})
	if kept == 0 && !t.Failed() {
		t.Error("no row was changed before it was saved: the test is vacuous")
	}
}

// A cut that cannot be made ends with an error that says why, and the next one is made.
func TestACutIsGivenUpAndTheNextOneMade(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := local(t, 2, Config{Model: cutModel(t), Workers: 1})
	w := c.Nodes[1].Worker(0)
	must(t, w.Push(ctx, []godwit.Key{3}, []float32{1, 2, 3})) // it has not come to a step boundary
	short, end := context.WithTimeout(ctx, 2*time.Second)
	defer end()
	none := func(int, []uint64, []float32) error { return nil }
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, n := range c.Nodes {
		wg.Go(func() { _, errs[i] = n.Cut(short, 1, WholeCut, none) })
	}
	wg.Wait()
	if err := errs[1]; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "worker 1.0") {
		t.Errorf("node 1: %v, want that worker 1.0 is waited for", err)
	}
	if err := errs[0]; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("node 0: %v, want that its context ended", err)
	}
	w.Finish()
	full := errors.New("the disk is full")
	for i, n := range c.Nodes {
		wg.Go(func() {
			_, errs[i] = n.Cut(ctx, 2, WholeCut, func(int, []uint64, []float32) error { return full })
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); !errors.Is(err, full) {
		t.Errorf("%v, want that of the sink", err)
	}
	each := func(number uint64, which func(i int) Which) error {
		for i, n := range c.Nodes {
			wg.Go(func() { _, errs[i] = n.Cut(ctx, number, which(i), none) })
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	if err := each(3, func(int) Which { return ChangedCut }); err == nil || !strings.Contains(err.Error(), "must be of all") {
		t.Errorf("a cut of changed rows after one that was given up: %v", err)
	}
	rows := cutAll(t, c, 4, WholeCut)
	if err := each(5, func(i int) Which { return Which(i) }); err == nil || !strings.Contains(err.Error(), "not all nodes") {
		t.Errorf("a cut of changed rows at one node, of all at the other: %v", err)
	}
	if row := rows[[2]uint64{0, 3}]; len(row) != 3 {
		t.Errorf("row 3 is %v after cuts that were given up", row)
	}
	if _, err := c.Nodes[0].Cut(ctx, 5, WholeCut, none); err == nil {
		t.Error("a cut of the same number again")
	}
}

// A node that is alone hears of no other that gave a cut up: it knows by itself that the next one must be of all rows.
func TestANodeThatIsAloneOwesAllRowsAfterACutThatWasGivenUp(t *testing.T) {
	c := local(t, 1, Config{Model: cutModel(t), Workers: 1})
	w := c.Nodes[0].Worker(0)
	must(t, w.Push(t.Context(), []godwit.Key{3}, []float32{1, 2, 3}))
	w.Finish()
	full := errors.New("the disk is full")
	fails := func(int, []uint64, []float32) error { return full }
	if _, err := c.Nodes[0].Cut(t.Context(), 1, WholeCut, fails); !errors.Is(err, full) {
		t.Errorf("%v, want that of the sink", err)
	}
	none := func(int, []uint64, []float32) error { return nil }
	if _, err := c.Nodes[0].Cut(t.Context(), 2, ChangedCut, none); err == nil || !strings.Contains(err.Error(), "must be of all") {
		t.Errorf("a cut of changed rows after one that was given up: %v", err)
	}
	if rows := cutAll(t, c, 3, WholeCut); len(rows) != 1 {
		t.Errorf("%d rows are in the cut of all, want 1", len(rows))
	}
	if rows := cutAll(t, c, 4, ChangedCut); len(rows) != 0 {
		t.Errorf("%d rows have changed since, want none", len(rows))
	}
}

// A node that fails while it hands rows over does not use the sink any more when Cut has returned: what the sink writes to may be closed then.
func TestASinkIsNotUsedWhenACutHasEndedWithTheRun(t *testing.T) {
	const rows = 10_000
	c := local(t, 1, Config{Model: modelOf(t, godwit.Table{Name: "t", Rows: rows, Dim: 1}), Workers: 1})
	n, w := c.Nodes[0], c.Nodes[0].Worker(0)
	must(t, godwit.PushRange(t.Context(), w, 0, rows, make([]float32, rows)))
	w.Finish()
	why := errors.New("out of cheese")
	var ended atomic.Bool
	calls := 0
	_, err := n.Cut(t.Context(), 1, WholeCut, func(int, []uint64, []float32) error {
		if calls++; calls == 1 {
			n.run.Fail(why)
			time.Sleep(20 * time.Millisecond) // a Cut that does not wait returns meanwhile
		}
		if ended.Load() {
			t.Error("the sink is in use after Cut has returned")
		}
		return nil
	})
	ended.Store(true)
	if !errors.Is(err, why) {
		t.Errorf("the cut ended with %v, want %v", err, why)
	}
	closeAll(t, c)
	if calls != 1 {
		t.Errorf("the sink was called %d times, and the run was over during the first", calls)
	}
}

// What cannot be restored is told, and the rows before it are restored.
func TestRowsThatCannotBeRestoredAreNamed(t *testing.T) {
	m := modelOf(t, godwit.Table{Name: "t", Rows: 100, Dim: 2})
	c := local(t, 2, Config{Model: m, Workers: 1, Policy: placement.RelocateAll})
	n := c.Nodes[0]
	own := homedAt(t, n, 0, 2)
	must(t, c.Nodes[1].Worker(0).Localize(t.Context(), own[1:]))
	stays, left := uint64(own[0]), uint64(own[1])
	for _, x := range []struct {
		table    int
		rows     []uint64
		floats   int
		restored int
		is       error
		says     string
	}{
		{1, nil, 0, 0, nil, "there is no table 1, the model has 1"},
		{-1, nil, 0, 0, nil, "there is no table -1"},
		{0, []uint64{stays}, 3, 0, godwit.ErrLength, `1 rows of table "t"`},
		{0, []uint64{stays, 100}, 4, 1, godwit.ErrKeyRange, `row 100 of table "t"`},
		{0, []uint64{stays, left}, 4, 1, nil, fmt.Sprintf(`row %d of table "t": the row has left this node already`, left)},
	} {
		got, err := n.Restore(x.table, x.rows, make([]float32, x.floats), false)
		if err == nil || got != x.restored || x.is != nil && !errors.Is(err, x.is) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("rows %v of table %d: %d restored, %v; want %d, and an error that says %q", x.rows, x.table, got, err, x.restored, x.says)
		}
	}
	closeAll(t, c)
	if _, err := n.Restore(0, []uint64{stays}, []float32{1, 2}, false); !errors.Is(err, godwit.ErrClosed) {
		t.Errorf("at a node that was closed: %v", err)
	}
}

func rowOf(m *godwit.Model, k godwit.Key) [2]uint64 {
	t, row := m.Locate(k)
	return [2]uint64{uint64(t), row}
}
