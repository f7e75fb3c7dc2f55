package sketch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/npy"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/train"
)

func newTask(t testing.TB, change func(*Config, *Spec)) *Task {
	t.Helper()
	c, s := DefaultConfig(), DefaultSpec()
	c.Width, c.Batch = 1<<10, 100
	s.Items, s.Distinct = 20_000, 5000
	if change != nil {
		change(&c, &s)
	}
	x, err := Generate(s)
	if err != nil {
		t.Fatal(err)
	}
	task, err := New(c, x)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// served makes a server of some tables. A table in front moves the keys.
func served(t testing.TB, nodes, perNode int, tables ...godwit.Table) *traintest.Server {
	t.Helper()
	m, err := godwit.NewModel(append([]godwit.Table{{Name: "other", Rows: 7, Dim: 3}}, tables...)...)
	if err != nil {
		t.Fatal(err)
	}
	return traintest.NewServer(m, nodes, perNode, 1)
}

func client(t testing.TB, s Sketch) *Client {
	t.Helper()
	c, err := s.On(served(t, 1, 1, s.Table()).Workers(0)[0])
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNodesCountAStreamTogetherAndKeepThePromises(t *testing.T) {
	task := newTask(t, nil)
	const nodes, epochs = 3, 2
	s := served(t, nodes, 2, task.Tables()...)
	x := traintest.NewExchange(nodes)
	qs := make([]Quality, nodes)
	var wg sync.WaitGroup
	for node := range nodes {
		wg.Go(func() {
			env := train.Env{Workers: s.Workers(node), Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve}
			r, err := train.Run(t.Context(), env, task, train.Options{Epochs: epochs, EvalEvery: 1})
			if err != nil {
				t.Errorf("node %d: %v", node, err)
				return
			}
			for _, ev := range r.Results {
				if len(ev.Warnings) > 0 {
					t.Errorf("node %d: %q", node, ev.Warnings)
				}
			}
			if qs[node], err = task.EvaluateOn(t.Context(), &env, "all", 1); err != nil {
				t.Errorf("node %d: %v", node, err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	q := qs[0]
	t.Logf("%+v, bound %v", q, task.cfg.Bound(q.Total))
	if qs[1] != q || qs[2] != q {
		t.Errorf("nodes find %+v", qs)
	}
	if q.Total != epochs*20_000 || q.Streams != epochs || q.Items != int64(task.Distinct()) {
		t.Errorf("%+v, want all items of %d streams", q, epochs)
	}
	if q.TooSmall != 0 || q.Torn != 0 {
		t.Errorf("%d estimates are too small, %d rows are torn", q.TooSmall, q.Torn)
	}
	if least := 1 - math.Exp(-float64(task.cfg.Depth)); q.Within < least {
		t.Errorf("%.4f of the estimates are within the bound, want at least %.4f", q.Within, least)
	}
	if q.Excess <= 0 || float64(q.Most) < q.Excess {
		t.Errorf("the excess is %v in the mean and %v at the most", q.Excess, q.Most)
	}
}

// A slow twin: cells in a map.
func TestEstimatesAreTheSmallestOfTheItemsCells(t *testing.T) {
	task := newTask(t, func(c *Config, s *Spec) { c.Width, c.Depth = 37, 3 })
	c := client(t, task.cfg.Sketch)
	cells := map[uint32]int64{}
	for from := 0; from < len(task.stream.Items); from += 777 {
		items := task.stream.Items[from:min(from+777, len(task.stream.Items))]
		if err := c.Add(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		for _, x := range items {
			for row := range 3 {
				cells[c.sketch.cell(x, row)]++
			}
		}
	}
	got := make([]int64, len(task.items))
	if err := c.Estimate(t.Context(), task.items, got); err != nil {
		t.Fatal(err)
	}
	for i, x := range task.items {
		want := int64(math.MaxInt64)
		for row := range 3 {
			want = min(want, cells[c.sketch.cell(x, row)])
		}
		if got[i] != want {
			t.Fatalf("item %d is estimated at %d, want %d", x, got[i], want)
		}
	}
}

func TestCellsOfARowAreHitAlike(t *testing.T) {
	s := Sketch{Depth: 3, Width: 100, Seed: 5}
	var hits [300]int
	same := 0
	const n = 100_000
	for x := range uint64(n) {
		for row := range 3 {
			cell := s.cell(x, row)
			if int(cell)/100 != row {
				t.Fatalf("item %d has cell %d in row %d", x, cell, row)
			}
			hits[cell]++
		}
		if s.cell(x, 0)%100 == s.cell(x, 1)%100 {
			same++
		}
	}
	for cell, h := range hits {
		if h < 800 || h > 1200 { // 1000 ± 6 deviations
			t.Errorf("cell %d has %d items of %d, want about 1000", cell, h, n)
		}
	}
	if same < 800 || same > 1200 {
		t.Errorf("%d items of %d have the same cell in two rows, want about 1000", same, n)
	}
}

func TestManyOfAnItemAreCountedBeyondWhatFloatsHold(t *testing.T) {
	c := client(t, Sketch{Depth: 1, Width: 1})
	items, dst := make([]uint64, 1<<20), make([]int64, 1)
	for range 20 {
		if err := c.Add(t.Context(), items); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Add(t.Context(), []uint64{7}); err != nil {
		t.Fatal(err)
	}
	if err := c.Estimate(t.Context(), []uint64{7}, dst); err != nil || dst[0] != 20<<20+1 {
		t.Errorf("counted %d (%v), want %d", dst[0], err, 20<<20+1)
	}
}

func TestAddingAllocatesNothingOnceBuffersHaveGrown(t *testing.T) {
	c := client(t, Sketch{Depth: 4, Width: 1 << 10})
	c.w = idle{c.w}
	items := make([]uint64, 500)
	for i := range items {
		items[i] = uint64(i * i)
	}
	add := func() {
		if err := c.Add(t.Context(), items); err != nil {
			t.Fatal(err)
		}
	}
	add()
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { _ = c.Add(ctx, items) }); n > 0 {
		t.Errorf("adding allocates %v times", n)
	}
}

// A slow worker's pushes end when they are waited for.
type slow struct {
	godwit.Worker
	next, waited godwit.Handle
	most         int
}

func (s *slow) PushAsync(ctx context.Context, ks []godwit.Key, x []float32) (godwit.Handle, error) {
	s.next++
	s.most = max(s.most, int(s.next-s.waited))
	return s.next, s.Push(ctx, ks, x)
}

func (s *slow) Wait(_ context.Context, hs ...godwit.Handle) error {
	for _, h := range hs {
		if h != s.waited+1 {
			return fmt.Errorf("push %d is waited for after %d", h, s.waited)
		}
		s.waited = h
	}
	return nil
}

func TestAFewPushesAreUnderWayAndFlushWaitsForAll(t *testing.T) {
	const pushes = 12
	c := client(t, Sketch{Depth: 1, Width: 2 * gathered})
	w := &slow{Worker: c.w}
	c.w = w
	c.tally.items = gathered
	items := make([]uint64, 2*gathered)
	for i := range pushes {
		for j := range items {
			items[j] = uint64(i*len(items) + j)
		}
		if err := c.Add(t.Context(), items); err != nil {
			t.Fatal(err)
		}
	}
	if w.most != window {
		t.Errorf("up to %d pushes were under way, want %d", w.most, window)
	}
	if err := c.Flush(t.Context()); err != nil || w.waited != pushes {
		t.Errorf("%d of %d pushes were waited for (%v)", w.waited, pushes, err)
	}
}

// A large sketch's cells are in a hash table: no cell and no item is lost there either.
func TestLargeAndSmallSketchesCountTheSame(t *testing.T) {
	s := Sketch{Depth: 3, Width: 1000, Seed: 5}
	small, large := newTally(s), newTally(Sketch{Depth: 3, Width: maxWidth})
	if small.dense == nil || large.dense != nil {
		t.Fatal("the test is vacuous")
	}
	large.sketch = s
	r := rand.New(rand.NewPCG(7, 0))
	for round := range 3 {
		items := make([]uint64, 5000)
		for i := range items {
			items[i] = r.Uint64N(3000)
		}
		var sums [2]map[godwit.Key]float32
		for i, x := range []*tally{&small, &large} {
			x.add(items)
			keys, adds, more := x.take(10, 0, nil, nil)
			sums[i] = map[godwit.Key]float32{}
			per := len(adds) / 2 / len(keys) // cells of a key
			if per != []int{32, 1}[i] || len(slices.Compact(slices.Sorted(slices.Values(keys)))) != len(keys) {
				t.Errorf("round %d: keys of %d cells, or some twice", round, per)
			}
			for j := range len(adds) / 2 {
				if adds[2*j+1] != 0 {
					t.Fatalf("round %d: the high float of cell %d is pushed", round, j)
				}
				if adds[2*j] != 0 {
					sums[i][(keys[j/per]-10)*godwit.Key(per)+godwit.Key(j%per)] += adds[2*j]
				}
			}
			if left, _, _ := x.take(10, 0, nil, nil); more != 0 || len(left) != 0 {
				t.Errorf("round %d: %d keys are left", round, len(left))
			}
		}
		total := float32(0)
		for _, n := range sums[0] {
			total += n
		}
		if !maps.Equal(sums[0], sums[1]) || total != 3*5000 {
			t.Errorf("round %d: the cells differ, or %v additions are not 15000", round, total)
		}
	}
}

// Of a sketch with more cells than are pushed at once, all are pushed.
func TestManyCellsArePushedInPieces(t *testing.T) {
	c := client(t, Sketch{Depth: 3, Width: maxPushed/2 + 1})
	w := &slow{Worker: c.w}
	c.w = w
	items := make([]uint64, 20_000)
	for i := range items {
		items[i] = uint64(i)
	}
	for range 2 {
		if err := c.Add(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if w.next != 4 {
		t.Errorf("%d pushes, want 2 of each time", w.next)
	}
	c.w = w.Worker
	for row := range 3 {
		if n, err := c.total(t.Context(), row, 0, c.sketch.Width); err != nil || n != 40_000 {
			t.Errorf("row %d adds up to %d (%v), want 40000", row, n, err)
		}
	}
}

// What is gathered for a cell fits a push, and all is sent before too much is.
func TestManyItemsOfFewCellsAreSentInTime(t *testing.T) {
	c := client(t, Sketch{Depth: 1, Width: 10})
	w := &slow{Worker: c.w}
	c.w = w
	for range 9 {
		if err := c.Add(t.Context(), make([]uint64, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if w.next != 2 {
		t.Errorf("%d pushes of 90 items to 10 cells, want one for each %d", w.next, perCell*10)
	}
}

// Items that are added by several calls are pushed together, and nothing is left behind.
func TestAddsAreGatheredUntilSomebodyAsks(t *testing.T) {
	c := client(t, Sketch{Depth: 2, Width: 100})
	w := &slow{Worker: c.w}
	c.w = w
	for range 50 {
		if err := c.Add(t.Context(), []uint64{7, 8, 7}); err != nil {
			t.Fatal(err)
		}
	}
	if w.next != 0 {
		t.Errorf("%d pushes of four cells", w.next)
	}
	counts := make([]int64, 2)
	for range 2 {
		if err := c.Estimate(t.Context(), []uint64{7, 8}, counts); err != nil || counts[0] != 100 || counts[1] != 50 {
			t.Errorf("counts are %v (%v), want 100 and 50", counts, err)
		}
	}
	if err := c.Flush(t.Context()); err != nil || w.next != 1 {
		t.Errorf("%d pushes (%v), want 1", w.next, err)
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Config, *Spec){
		"Depth": func(c *Config, _ *Spec) { c.Depth = 33 }, "Width": func(c *Config, _ *Spec) { c.Width = 0 },
		"Batch": func(c *Config, _ *Spec) { c.Batch = -1 }, "Items": func(_ *Config, s *Spec) { s.Items = 0 },
		"Distinct": func(_ *Config, s *Spec) { s.Distinct = 0 }, "Exponent": func(_ *Config, s *Spec) { s.Exponent = math.NaN() },
	} {
		c, s := DefaultConfig(), DefaultSpec()
		change(&c, &s)
		x, err := Generate(s)
		if err == nil {
			_, err = New(c, x)
		}
		if err == nil || !strings.Contains(err.Error(), "."+want+" ") {
			t.Errorf("%s: error %v", want, err)
		}
	}
	if _, err := New(DefaultConfig(), &Stream{}); err == nil {
		t.Error("an empty stream was accepted")
	}
	c := client(t, Sketch{Depth: 1, Width: 1})
	if err := c.Add(t.Context(), make([]uint64, maxItems+1)); err == nil {
		t.Error("more items were added than a push can hold")
	}
	if err := c.Estimate(t.Context(), make([]uint64, 2), make([]int64, 1)); err == nil {
		t.Error("estimates without room were made")
	}
	s := Sketch{Depth: 2, Width: 8}
	for want, table := range map[string]godwit.Table{
		"no table":    {Name: "cells", Rows: 16, Dim: 2, Rule: optim.Counter{}},
		"15 rows":     {Name: CellTable, Rows: 15, Dim: 2, Rule: optim.Counter{}},
		"under add, ": {Name: CellTable, Rows: 16, Dim: 2},
	} {
		if _, err := s.On(served(t, 1, 1, table).Workers(0)[0]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}

func TestLostCountsAreTold(t *testing.T) {
	task := newTask(t, nil)
	s := served(t, 1, 2, task.Tables()...)
	env := train.Env{Workers: s.Workers(0)}
	if _, err := train.Run(t.Context(), env, task, train.Options{Epochs: 1}); err != nil {
		t.Fatal(err)
	}
	c, err := task.cfg.On(env.Workers[0])
	if err != nil {
		t.Fatal(err)
	}
	var keys []godwit.Key
	var less []float32
	for row := range task.cfg.Depth {
		cell := int(task.cfg.cell(task.items[0], row))
		keys = append(keys, c.first+godwit.Key(cell/task.cfg.perKey()))
		less = append(less, make([]float32, 2*task.cfg.perKey())...)
		less[len(less)-2*(task.cfg.perKey()-cell%task.cfg.perKey())] = -float32(row * 4000)
	}
	if err := env.Workers[0].Push(t.Context(), keys, less); err != nil {
		t.Fatal(err)
	}
	ev, err := task.Evaluate(t.Context(), &env, 1)
	if err != nil || len(ev.Warnings) != 2 || !strings.Contains(ev.Warnings[0], "3 rows") || !strings.Contains(ev.Warnings[1], "too small") {
		t.Errorf("warnings %q, %v", ev.Warnings, err)
	}
}

func TestExportedCellsAreThoseOfTheServer(t *testing.T) {
	task := newTask(t, nil)
	s := served(t, 1, 1, task.Tables()...)
	env := train.Env{Workers: s.Workers(0)}
	if _, err := train.Run(t.Context(), env, task, train.Options{Epochs: 1}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	if err := traintest.Export(t.Context(), task, env.Workers[0], dir); err != nil {
		t.Fatal(err)
	}
	r, err := npy.Open(filepath.Join(dir, CountFile))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, cols := r.Shape()
	vals := make([]float32, rows*cols)
	if _, err := r.ReadRows(vals); err != nil {
		t.Fatal(err)
	}
	for row := range task.cfg.Depth {
		sum := int64(0)
		for cell := range task.cfg.Width {
			i := 2 * (row*task.cfg.Width + cell)
			sum += optim.Count(vals[i], vals[i+1])
		}
		if sum != 20_000 {
			t.Errorf("row %d adds up to %d", row, sum)
		}
	}
	if err := traintest.Export(t.Context(), task, env.Workers[0], filepath.Join(dir, CountFile)); err == nil {
		t.Error("cells were exported into a file")
	}
	if _, err := os.Stat(filepath.Join(dir, CountFile)); err != nil {
		t.Error(err)
	}
}

// counted is an exported sketch.
type counted struct {
	model export.Model
	cells export.Values
}

func (c *counted) Describe() *export.Model              { return &c.model }
func (c *counted) Array(string) (*export.Values, error) { return &c.cells, nil }
func (c *counted) Lines(string) ([]string, error)       { return nil, errors.New("there are none") }

func TestASketchWithOtherCellsIsNotTakenOver(t *testing.T) {
	task := newTask(t, nil)
	n := task.cfg.Depth * task.cfg.Width
	for want, change := range map[string]func(*counted){
		"":                func(*counted) {},
		"by which seed":   func(c *counted) { c.model.Run = nil },
		"its seed is 78":  func(c *counted) { c.model.Run.Seed = 78 },
		"cells, and":      func(c *counted) { c.cells.Rows-- },
		"count them anew": func(c *counted) { c.model.Score += "?" },
	} {
		src := &counted{
			export.Model{Task: "sketch", Score: task.score(), Run: &export.Run{Seed: task.cfg.Seed}},
			export.Values{Rows: n, Cols: 2, Floats: make([]float32, 2*n)},
		}
		change(src)
		if _, err := task.Import(src); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestEqualSpecsGiveEqualStreamsOfTheirPopularity(t *testing.T) {
	s := DefaultSpec()
	a, err := Generate(s)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Generate(s)
	s.Seed++
	c, _ := Generate(s)
	if !reflect.DeepEqual(a, b) || reflect.DeepEqual(a, c) {
		t.Error("the seed does not decide the stream")
	}
	items, counts := a.counts()
	if items[0] != 0 || items[1] != 1 {
		t.Fatalf("items %v …", items[:2])
	}
	if ratio := float64(counts[0]) / float64(counts[1]); math.Abs(ratio-math.Pow(2, 1.1)) > 0.1 {
		t.Errorf("the first item is %.2f times as frequent as the second, want 2^1.1", ratio)
	}
}

// idle is a worker that does nothing.
type idle struct{ godwit.Worker }

func (idle) PushAsync(context.Context, []godwit.Key, []float32) (godwit.Handle, error) {
	return 0, nil
}

func BenchmarkAdd(b *testing.B) {
	c := client(b, DefaultConfig().Sketch)
	c.w = idle{c.w}
	x, err := Generate(DefaultSpec())
	if err != nil {
		b.Fatal(err)
	}
	from := 0
	for b.Loop() {
		if err := c.Add(b.Context(), x.Items[from:from+1000]); err != nil {
			b.Fatal(err)
		}
		from = (from + 1000) % len(x.Items)
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "items/s")
}

func TestATallyAddsToTheCellsThatEstimatesAskFor(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for depth := 1; depth <= 5; depth++ {
		for _, width := range []int{1, 2, 64, 100, 1 << 10, 1<<16 - 1, 1 << 16} {
			s := Sketch{Depth: depth, Width: width, Seed: r.Uint64()}
			tally, want := newTally(s), make([]uint32, s.cells())
			items := make([]uint64, 1+r.IntN(1500))
			for i := range items {
				items[i] = r.Uint64() >> r.IntN(64)
				for row := range depth {
					want[s.cell(items[i], row)]++
				}
			}
			tally.add(items)
			if !slices.Equal(tally.dense[:len(want)], want) {
				t.Errorf("%d items are not in the cells of %+v", len(items), s)
			}
		}
	}
}

func TestStepsAreA128thOfTheItemsBetweenBounds(t *testing.T) {
	for items, want := range map[int]int{1: 1000, 128_000: 1000, 256_000: 2000, 10_000_000: 8000} {
		c := DefaultConfig()
		if got := c.batch(items); got != want {
			t.Errorf("a step of %d items has %d, want %d", items, got, want)
		}
		if c.Batch = 7; c.batch(items) != 7 {
			t.Errorf("a step has %d items, not those of the settings", c.batch(items))
		}
	}
}

// A counting worker counts pushes, which do nothing.
type counting struct {
	godwit.Worker
	n int
}

func (c *counting) PushAsync(context.Context, []godwit.Key, []float32) (godwit.Handle, error) {
	c.n++
	return 0, nil
}

// Of a large sketch, what is added is sent as soon as many cells were added to.
func TestManyCellsOfALargeSketchAreSentInTime(t *testing.T) {
	c := &Client{sketch: Sketch{Depth: 1, Width: 1 << 23}}
	c.tally = newTally(c.sketch)
	pushes := &counting{}
	c.w = pushes
	items := make([]uint64, gathered/2)
	for i := range items {
		items[i] = uint64(i)
	}
	for calls := 1; pushes.n == 0; calls++ {
		if err := c.Add(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		if c.tally.cells.Len() >= gathered || calls > 4 {
			t.Fatalf("%d cells are held after %d calls", c.tally.cells.Len(), calls)
		}
		for i := range items {
			items[i] += uint64(len(items))
		}
	}
	if c.items != 0 || c.held != 0 {
		t.Errorf("after all was sent, %d items of %d calls are held", c.items, c.held)
	}
}

func TestStreamsAreToldApart(t *testing.T) {
	a, b, c := &Stream{Items: []uint64{1, 2}}, &Stream{Items: []uint64{1, 3}}, &Stream{Items: []uint64{2, 1}}
	if f := a.Fingerprint(); f == b.Fingerprint() || f == c.Fingerprint() || f != (&Stream{Items: []uint64{1, 2}}).Fingerprint() {
		t.Errorf("the fingerprints are %s, %s and %s", f, b.Fingerprint(), c.Fingerprint())
	}
}

// The steps of all chunks are the stream, one after the other.
func TestStepsAreTheWholeStream(t *testing.T) {
	task := newTask(t, func(c *Config, s *Spec) { c.Batch, s.Items = 1, 20_003 })
	tr := &trainer{task: task}
	next, most := 0, 0
	for chunk := range task.Chunks() {
		n := tr.Steps(1, chunk)
		most = max(most, n)
		for step := range n {
			var b train.Batch[Batch]
			tr.Load(&b, train.At{Epoch: 1, Chunk: chunk, Step: step})
			if b.Data.from != next || b.Data.to <= b.Data.from {
				t.Fatalf("step %d of chunk %d has items %d to %d, want them from %d on", step, chunk, b.Data.from, b.Data.to, next)
			}
			next = b.Data.to
		}
	}
	if next != 20_003 || most < 2 {
		t.Errorf("%d items are counted, in chunks of %d steps at the most", next, most)
	}
}

func TestExponentsOfAStreamHaveBounds(t *testing.T) {
	for x, ok := range map[float64]bool{-0.01: false, 0: true, 3: true, 3.01: false, math.Inf(1): false, math.Inf(-1): false} {
		s := DefaultSpec()
		if s.Exponent = x; (s.Check() == nil) != ok {
			t.Errorf("an exponent of %v: %v", x, s.Check())
		}
	}
}
