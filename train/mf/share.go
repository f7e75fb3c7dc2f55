package mf

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/distinct"
)

// A Batch is the task's part of a [train.Batch]: cells, as numbers of the
// batch's distinct rows and columns. The batch's keys are those of the rows,
// then those of the columns.
type Batch struct {
	rows, cols int
	cells      []cell
	// block names the columns that only this worker uses within the stage of an epoch, turn, that the batch is of. Under
	// other orders than Blocks it is nil.
	block []godwit.Key
	turn  turn
}

// A turn is an epoch and a chunk of it.
type turn struct{ epoch, chunk int }

type cell struct {
	row, col int32
	value    float32
}

// A span is cells from … to-1 of an order.
type span struct{ from, to int }

// A loader fills batches: under the order Plain with the cells of chunks, else with one
// worker's share of the cells, in an order that settings, seed, part and epoch decide.
type loader struct {
	task  *Task
	keys  keys
	items *schedule.Items // positions of cells, under the order Plain; it has nothing else

	part  train.Partition
	batch int              // the cells of a step
	cells []ratings.Rating // the share; by column, or by block of columns
	home  []godwit.Key     // the rows of the share, if no other worker has them

	columns []span         // of the share, under the order Columns
	blocks  []span         // of the share, under the order Blocks
	bound   [][]godwit.Key // the columns of each block

	// The epoch that is being loaded.
	epoch int
	order []uint32 // positions of cells
	parts []span   // of order: those of chunks
	block []int    // of each part

	num numberer
}

func newLoader(t *Task, k keys, part train.Partition) *loader {
	l := &loader{task: t, keys: k, part: part, batch: t.cfg.batch(len(t.set.Train), part), num: numberer{keys: k}}
	if t.cfg.Order == Plain {
		l.items = t.items()
		return l
	}
	l.cluster()
	l.order = make([]uint32, len(l.cells))
	switch t.cfg.Order {
	case Columns:
		l.columns = sortBy(l.cells, t.set.Cols, func(c ratings.Rating) int { return int(c.Col) })
	case Blocks:
		of := balance(t.cols, part.Count)
		l.blocks = sortBy(l.cells, part.Count, func(c ratings.Rating) int { return int(of[c.Col]) })
		l.bound = make([][]godwit.Key, part.Count)
		for col, b := range of {
			if t.cols[col] > 0 {
				l.bound[b] = append(l.bound[b], k.column+godwit.Key(col))
			}
		}
	}
	return l
}

// cluster takes the cells of the worker's own rows.
func (l *loader) cluster() {
	of := balance(l.task.rows, l.part.Count)
	for _, c := range l.task.set.Train {
		if int(of[c.Row]) == l.part.Index {
			l.cells = append(l.cells, c)
		}
	}
	for row, p := range of {
		if int(p) == l.part.Index && l.task.rows[row] > 0 {
			l.home = append(l.home, l.keys.row+godwit.Key(row))
		}
	}
}

// sortBy sorts cells by a number 0 … n-1 and returns the spans of the numbers.
func sortBy(cells []ratings.Rating, n int, number func(ratings.Rating) int) []span {
	slices.SortStableFunc(cells, func(a, b ratings.Rating) int { return cmp.Compare(number(a), number(b)) })
	spans := make([]span, n)
	at := 0
	for i := range spans {
		spans[i].from = at
		for at < len(cells) && number(cells[at]) == i {
			at++
		}
		spans[i].to = at
	}
	return spans
}

// begin orders the cells for an epoch.
func (l *loader) begin(epoch int) {
	// All workers draw the same schedule of blocks; the rest differs.
	r := rand.New(rand.NewPCG(l.task.cfg.Seed, uint64(epoch)<<32|uint64(l.part.Index)))
	l.epoch, l.parts, l.block = epoch, l.parts[:0], l.block[:0]
	switch l.task.cfg.Order {
	case Columns:
		at := 0
		for _, c := range r.Perm(len(l.columns)) {
			at = l.take(l.columns[c], at, r)
		}
		l.parts = append(l.parts, span{0, at})
	case Blocks:
		all := rand.New(rand.NewPCG(l.task.cfg.Seed^0x626c6f636b, uint64(epoch)))
		at := 0
		for _, turn := range all.Perm(l.part.Count) {
			b := (l.part.Index + turn) % l.part.Count
			to := l.take(l.blocks[b], at, r)
			l.parts, l.block = append(l.parts, span{at, to}), append(l.block, b)
			at = to
		}
	}
}

// take puts the cells of a span into the order from at on, shuffled, and returns
// where they end.
func (l *loader) take(s span, at int, r *rand.Rand) int {
	o := l.order[at : at+s.to-s.from]
	for i := range o {
		o[i] = uint32(s.from + i)
	}
	r.Shuffle(len(o), func(i, j int) { o[i], o[j] = o[j], o[i] })
	return at + len(o)
}

// steps is the number of batches of a chunk of an epoch.
func (l *loader) steps(epoch, chunk int) int {
	if l.items != nil {
		return l.items.Steps(chunk)
	}
	p := span{0, len(l.cells)} // the same in each epoch
	if l.task.cfg.Order == Blocks && l.part.Count > 1 {
		p = l.at(epoch, chunk)
	}
	return (p.to - p.from + l.batch - 1) / l.batch
}

// at returns the part of order that a chunk is, after ordering the epoch if need be.
func (l *loader) at(epoch, chunk int) span {
	if l.epoch != epoch {
		l.begin(epoch)
	}
	return l.parts[l.stage(chunk)]
}

// stage is that of a chunk under the order Blocks, else 0.
func (l *loader) stage(chunk int) int {
	if l.task.cfg.Order != Blocks {
		return 0
	}
	return chunk / l.part.Count
}

func (l *loader) load(b *train.Batch[Batch], at train.At) {
	d := &b.Data
	l.num.begin(b)
	d.block, d.turn = nil, turn{at.Epoch, at.Chunk}
	if l.items != nil {
		for _, i := range l.items.Batch(at.Epoch, at.Chunk, at.Step) {
			l.num.add(b, l.task.set.Train[i])
		}
		l.num.end(b)
		return
	}
	p := l.at(at.Epoch, at.Chunk)
	if l.task.cfg.Order == Blocks {
		d.block = l.bound[l.block[l.stage(at.Chunk)]]
	}
	from := p.from + at.Step*l.batch
	for _, i := range l.order[from:min(from+l.batch, p.to)] {
		l.num.add(b, l.cells[i])
	}
	l.num.end(b)
}

// A numberer numbers the rows and columns of a batch's cells.
type numberer struct {
	keys       keys
	rows, cols distinct.Rows
}

func (n *numberer) begin(b *train.Batch[Batch]) {
	b.Data.cells = b.Data.cells[:0]
	n.rows.Reset()
	n.cols.Reset()
}

func (n *numberer) add(b *train.Batch[Batch], c ratings.Rating) {
	b.Data.cells = append(b.Data.cells, cell{n.rows.Add(c.Row), n.cols.Add(c.Col), c.Value})
}

// end sets the batch's keys.
func (n *numberer) end(b *train.Batch[Batch]) {
	b.Data.rows, b.Data.cols = n.rows.Len(), n.cols.Len()
	b.Keys = b.Keys[:0]
	for _, r := range n.rows.All() {
		b.Keys = append(b.Keys, n.keys.row+godwit.Key(r))
	}
	for _, c := range n.cols.All() {
		b.Keys = append(b.Keys, n.keys.column+godwit.Key(c))
	}
}
