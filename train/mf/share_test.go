package mf

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/internal/seedtest"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

// A visit is a cell in the place where a worker trains it.
type visit struct {
	part, stage int
	ratings.Rating
}

// visits loads an epoch of all parts, and checks each batch.
func visits(t *testing.T, task *Task, k keys, epoch, parts int) []visit {
	t.Helper()
	var all []visit
	for part := range parts {
		l := newLoader(task, k, train.Partition{Index: part, Count: parts})
		var b train.Batch[Batch]
		for e := 1; e <= epoch; e++ {
			chunks := max(1, task.Chunks(), parts*task.Stages(parts))
			for at := range traintest.Steps(&trainer{load: l}, chunks, e) {
				if chunks > 1 && at.Chunk%parts != part {
					continue
				}
				l.load(&b, at)
				distinct := map[godwit.Key]bool{}
				for _, key := range b.Keys {
					distinct[key] = true
				}
				if len(distinct) != len(b.Keys) || len(b.Keys) != b.Data.rows+b.Data.cols || len(b.Data.cells) > task.cfg.Batch {
					t.Fatalf("a batch of %d cells has keys %v", len(b.Data.cells), b.Keys)
				}
				if e == epoch {
					for _, c := range b.Data.cells {
						all = append(all, visit{part, l.stage(at.Chunk), ratings.Rating{
							Row: uint32(b.Keys[c.row] - k.row), Col: uint32(b.Keys[b.Data.rows+int(c.col)] - k.column), Value: c.value,
						}})
					}
				}
			}
		}
	}
	return all
}

func TestEveryCellIsTrainedOnceInAnEpoch(t *testing.T) {
	for _, order := range Orders() {
		for _, parts := range []int{1, 3, 8, 40} { // some of 40 parts have no row
			set := randomSet(30, 20, 300, 2)
			task, s := setup(t, small(order), set, 1, 1)
			k, err := task.keys(s.Workers(0)[0].Model())
			if err != nil {
				t.Fatal(err)
			}
			left := map[ratings.Rating]int{}
			for _, c := range set.Train {
				left[c]++
			}
			for _, v := range visits(t, task, k, 2, parts) {
				left[v.Rating]--
			}
			for c, n := range left {
				if n != 0 {
					t.Errorf("%s by %d: cell %v was trained %d times too seldom", order, parts, c, n)
				}
			}
		}
	}
}

func TestOrdersKeepWorkersApart(t *testing.T) {
	const parts = 4
	set := randomSet(40, 30, 600, 3)
	for _, order := range []string{Columns, Blocks} {
		task, s := setup(t, small(order), set, 1, 1)
		k, err := task.keys(s.Workers(0)[0].Model())
		if err != nil {
			t.Fatal(err)
		}
		byRow, byCol := map[uint32]int{}, map[[2]int]int{}
		for _, v := range visits(t, task, k, 1, parts) {
			if p, ok := byRow[v.Row]; ok && p != v.part {
				t.Fatalf("%s: row %d is trained by %d and %d", order, v.Row, p, v.part)
			}
			byRow[v.Row] = v.part
			at := [2]int{v.stage, int(v.Col)}
			if p, ok := byCol[at]; ok && p != v.part && order == Blocks {
				t.Fatalf("column %d is trained by %d and %d in one stage", v.Col, p, v.part)
			}
			byCol[at] = v.part
		}
	}
}

func TestColumnsAreTrainedOneAfterTheOtherInAnotherOrderEachEpoch(t *testing.T) {
	task, s := setup(t, small(Columns), randomSet(40, 30, 600, 3), 1, 1)
	k, err := task.keys(s.Workers(0)[0].Model())
	if err != nil {
		t.Fatal(err)
	}
	var orders [2][]uint32
	for i := range orders {
		for _, v := range visits(t, task, k, i+1, 1) {
			o := &orders[i]
			if n := len(*o); n == 0 || (*o)[n-1] != v.Col {
				*o = append(*o, v.Col)
			}
		}
		if len(orders[i]) != 29 {
			t.Errorf("epoch %d changes to another column %d times, there are 29 with cells", i+1, len(orders[i]))
		}
	}
	if slices.Equal(orders[0], orders[1]) {
		t.Error("two epochs go through the columns alike")
	}
}

func TestABlocksColumnsAreNamedWhenItBegins(t *testing.T) {
	const parts = 3
	task, s := setup(t, small(Blocks), randomSet(40, 30, 600, 3), 1, 1)
	k, err := task.keys(s.Workers(0)[0].Model())
	if err != nil {
		t.Fatal(err)
	}
	l := newLoader(task, k, train.Partition{Index: 1, Count: parts})
	var b train.Batch[Batch]
	var block []godwit.Key
	for stage := range parts {
		block = nil
		for step := range l.steps(1, stage*parts+1) {
			l.load(&b, train.At{Epoch: 1, Chunk: stage*parts + 1, Step: step})
			if step == 0 {
				block = b.Data.block
			}
			for _, col := range b.Keys[b.Data.rows:] {
				if !slices.Contains(block, col) {
					t.Fatalf("column %d is not of the block %v", col, block)
				}
			}
		}
	}
}

// A localizer notes what is localized.
type localizer struct {
	godwit.Worker
	calls [][]godwit.Key
}

func (w *localizer) Localize(ctx context.Context, keys []godwit.Key) error {
	w.calls = append(w.calls, slices.Clone(keys))
	return w.Worker.Localize(ctx, keys)
}

// A worker localizes its rows once, those with cells, and the columns of a block once a stage.
func TestWhatAWorkerAloneNeedsIsLocalizedOnce(t *testing.T) {
	const parts, epochs = 3, 2
	set := randomSet(40, 30, 600, 3)
	set.Rows++ // one without cells
	task, s := setup(t, small(Blocks), set, 1, 1)
	k, err := task.keys(s.Workers(0)[0].Model())
	if err != nil {
		t.Fatal(err)
	}
	for part := range parts {
		w := &localizer{Worker: s.Workers(0)[0]}
		tr := &trainer{task: task, w: w, load: newLoader(task, k, train.Partition{Index: part, Count: parts}), lr: 0.01}
		var b train.Batch[Batch]
		for epoch := 1; epoch <= epochs; epoch++ {
			for stage := range parts {
				at := train.At{Epoch: epoch, Chunk: stage*parts + part}
				for at.Step = range tr.Steps(epoch, at.Chunk) {
					tr.Load(&b, at)
					if _, err := tr.Step(t.Context(), &b); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if len(w.calls) != 1+epochs*parts {
			t.Fatalf("worker %d localizes %d times, want its rows once and columns once in each of %d stages", part, len(w.calls), epochs*parts)
		}
		for _, key := range w.calls[0] {
			if key == k.row+godwit.Key(set.Rows-1) {
				t.Errorf("worker %d localizes a row without cells", part)
			}
		}
	}
}

func TestWeightsAreBalanced(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		weights, parts := make([]int, 1+r.IntN(300)), 1+r.IntN(40)
		most, sum := 0, 0
		for i := range weights {
			weights[i] = int(100 / (1 + 99*r.Float64()))
			most, sum = max(most, weights[i]), sum+weights[i]
		}
		of := balance(weights, parts)
		loads := make([]int, parts)
		for i, p := range of {
			loads[p] += weights[i]
		}
		// The part that ends heaviest had the least when it got its last item.
		if got := slices.Max(loads); got > sum/parts+most {
			t.Fatalf("seed %d: a part of %d, the mean is %d, the heaviest item %d", seed, got, sum/parts, most)
		}
		if !slices.Equal(of, balance(weights, parts)) {
			t.Fatal("the same weights are dealt differently")
		}
	}
}

// On one node a step of SGD has as many cells as share copies of rows, but so few that two workers seldom have a column at the same time.
func TestStepsAreLargeWhereARunHasOneNode(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		c := DefaultConfig()
		c.Dim, c.Biased = 1+r.IntN(1<<r.IntN(12)), r.IntN(2) == 0
		cells, part := 1+r.IntN(1<<(1+r.IntN(24))), train.Partition{Count: 1 + r.IntN(64), Nodes: 1}
		n, share := c.batch(cells, part), float64(cells)/float64(part.Count)
		switch {
		case n < LeastBatch || n > manyCells:
			t.Fatalf("seed %d: steps of %d cells of %d by %+v", seed, n, cells, part)
		case n == LeastBatch:
		case float64((part.Count-1)*n) > share/8 || n*c.width() > manyFloats:
			t.Fatalf("seed %d: steps of %d cells of %d of %d floats by %+v", seed, n, cells, c.width(), part)
		}
		if few := max(LeastBatch, int(share/8)/part.Count); c.Dim <= 32 && n < min(few, manyCells) {
			t.Fatalf("seed %d: steps of only %d cells of %d by %+v", seed, n, cells, part)
		}
	}
	const cells = 1 << 20
	for what, change := range map[string]func(*Config, *train.Partition){
		"several nodes":   func(_ *Config, p *train.Partition) { p.Nodes = 2 },
		"unknown nodes":   func(_ *Config, p *train.Partition) { p.Nodes = 0 },
		"the order plain": func(c *Config, _ *train.Partition) { c.Order = Plain },
		"another rule":    func(c *Config, _ *train.Partition) { c.Rule, c.BoldDriver = "adagrad", false },
	} {
		c, part := DefaultConfig(), train.Partition{Count: 2, Nodes: 1}
		if n := c.batch(cells, part); n < 16*LeastBatch {
			t.Errorf("one node: steps of %d cells", n)
		}
		change(&c, &part)
		if n := c.batch(cells, part); n != 256 {
			t.Errorf("%s: steps of %d cells", what, n)
		}
		if c.Batch = 7; c.batch(cells, part) != 7 {
			t.Errorf("%s: steps of 7 cells were asked for", what)
		}
	}
}
