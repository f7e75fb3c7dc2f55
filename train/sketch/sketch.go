// Package sketch counts the items of a stream by a count-min sketch that all
// workers of all nodes add to: far fewer cells than there are different items,
// and counts that are never too small and rarely much too large (Cormode,
// Muthukrishnan, "An Improved Data Stream Summary: The Count-Min Sketch and its
// Applications", Journal of Algorithms 2005).
//
// A [Sketch] says how large it is and in which table it lies; a [Client] adds to
// it and asks it, through any [godwit.Worker]. A [Task] counts a whole stream by
// [train.Run] and evaluates the counts.
//
// # What is promised
//
// Each item has one cell in each of Depth rows, chosen by a hash. Adding an item
// adds to these cells; its estimate is the smallest of them. With a total of N,
// an estimate is at least the count, and exceeds it by more than e/Width·N with
// a probability of at most e^-Depth. Cells are counted exactly, up to 2⁴⁰ (see
// [optim.Counter]), so that both hold whatever was moved or replicated on the
// way.
//
// # Measured
//
// Ten million items of 200,000 different ones (Zipf, exponent 1.1), in 4 rows of 65,536 cells,
// take 5 ns of processor time an item on one node of two workers, and 14 ns on
// four nodes of one worker each, where three of four cells are at another node.
package sketch

import (
	"context"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/train/internal/buffer"
	"github.com/godwit-ps/godwit/train/internal/tables"

	"github.com/godwit-ps/godwit/data/setting"
)

// A Sketch describes a count-min sketch.
type Sketch struct {
	// Depth is the number of rows, 1 … 32: more make large errors rarer.
	Depth int
	// Width is the number of cells of a row, 1 … 2^26: more make errors smaller.
	Width int
	// Seed decides the hashes.
	Seed uint64
}

const (
	maxDepth = 32
	maxWidth = 1 << 26
)

// CellTable is the name of the table of cells.
const CellTable = "cell"

// Check returns what is wrong with the sketch.
func (s Sketch) Check() error {
	switch {
	case s.Depth < 1 || s.Depth > maxDepth:
		return setting.Outside("sketch.Sketch", "Depth", s.Depth, 1, maxDepth)
	case s.Width < 1 || s.Width > maxWidth:
		return setting.Outside("sketch.Sketch", "Width", s.Width, 1, maxWidth)
	}
	return nil
}

// Table describes the table of cells, for [godwit.NewModel]. Cell c of row r of the sketch has number
// r·Width + c. A row of the table has the low and high floats ([optim.Counter]) of 32 cells with successive numbers, of
// one cell where the sketch has more than 2^22. Pushes are sparse: high floats are 0, and those of many cells.
func (s Sketch) Table() godwit.Table {
	per := s.perKey()
	return godwit.Table{Name: CellTable, Rows: uint64((s.cells() + per - 1) / per), Dim: 2 * per, Rule: optim.Counter{}, Counts: true, Relaxed: true, Filters: []godwit.Filter{filter.Sparse{}}}
}

// cells is how many cells the sketch has.
func (s Sketch) cells() int { return s.Depth * s.Width }

// small reports whether a client has a number for each cell, and adds to most of them before it pushes.
func (s Sketch) small() bool { return s.cells() <= maxDense }

// perKey is how many cells a key has. Pushing a key costs ten times as much as adding to one of its cells.
func (s Sketch) perKey() int {
	if s.small() {
		return 32
	}
	return 1
}

// Bound is by how much an estimate exceeds the count rarely, in a stream of so
// many items.
func (s Sketch) Bound(total int64) float64 { return math.E / float64(s.Width) * float64(total) }

// cell is the number of the cell that an item has in a row of the sketch.
func (s Sketch) cell(item uint64, row int) uint32 {
	return uint32(row*s.Width) + column(s.hash(item), s.multiplier(row), uint64(s.Width))
}

// hash spreads items. Each row of the sketch takes its column from the hash by a multiplication, whose
// high bits are as good as independent from row to row: "multiply-shift", Dietzfelbinger et al., "A Reliable
// Randomized Algorithm for the Closest-Pair Problem", Journal of Algorithms 1997.
func (s Sketch) hash(item uint64) uint64 { return godwit.Hash64(item ^ s.salt()) }

func (s Sketch) salt() uint64 { return s.Seed * 0x9e3779b97f4a7c15 }

// multiplier is the odd number by which hashes are multiplied for a row of the sketch.
func (s Sketch) multiplier(row int) uint64 {
	return godwit.Hash64((s.Seed+uint64(row)+1)*0x9e3779b97f4a7c15) | 1
}

// column is the place in a row of width cells that a hash has.
func column(hash, multiplier, width uint64) uint32 {
	return uint32((hash * multiplier >> 32) * width >> 32)
}

// A Client adds to a sketch and asks it, by one worker, to whose goroutine it
// belongs.
type Client struct {
	sketch Sketch
	w      godwit.Worker
	first  godwit.Key

	tally tally // of what was added and not pushed yet:
	items int   // so many, in
	held  int   // … so many calls
	keys  []godwit.Key
	adds  []float32 // what is pushed
	vals  []float32
	under []godwit.Handle // pushes under way, the oldest first
}

// window is how many pushes may be under way: nobody waits for what they do.
const window = 8

// On returns a client of a worker, whose model must have the sketch's table.
func (s Sketch) On(w godwit.Worker) (*Client, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	first, err := tables.Find(w.Model(), []godwit.Table{s.Table()})
	if err != nil {
		return nil, fmt.Errorf("sketch: %w", err)
	}
	return &Client{sketch: s, w: w, first: first[0], tally: newTally(s)}, nil
}

// maxItems bounds the items that are added or asked for at once, so that a cell
// gets no more than a [optim.Counter] takes in a push.
const maxItems = 1 << 23

// Add counts each item once more, at most 2^23 of them. Items may repeat. Add gathers what
// several calls add to a cell, up to four items a cell of the sketch, and does not wait for
// what it sends: others see what was added after a Flush, which sends it all, and
// waits. Estimate shows all that this client has added.
func (c *Client) Add(ctx context.Context, items []uint64) error {
	if len(items) > maxItems {
		return fmt.Errorf("sketch: adding %d items at once, at most %d are possible", len(items), maxItems)
	}
	if c.items > 0 && c.items+len(items) > c.tally.items {
		if err := c.send(ctx); err != nil {
			return err
		}
	}
	c.items += len(items)
	c.held++
	c.tally.add(items)
	if c.tally.filled() {
		return c.send(ctx)
	}
	return nil
}

// send pushes what was added.
func (c *Client) send(ctx context.Context) error {
	if c.items == 0 {
		return nil
	}
	for from, more := 0, true; more; more = from != 0 {
		if len(c.under) == window {
			if err := c.w.Wait(ctx, c.under[0]); err != nil {
				return err
			}
			c.under = append(c.under[:0], c.under[1:]...)
		}
		c.keys, c.adds, from = c.tally.take(c.first, from, c.keys[:0], c.adds[:0])
		if len(c.keys) == 0 {
			continue
		}
		h, err := c.w.PushAsync(ctx, c.keys, c.adds)
		if err != nil {
			return err
		}
		if h != 0 {
			c.under = append(c.under, h)
		}
	}
	c.items, c.held = 0, 0
	return nil
}

// Flush returns when all that was added is counted: at the main copies, wherever copies of
// cells are.
func (c *Client) Flush(ctx context.Context) error {
	if err := c.send(ctx); err != nil {
		return err
	}
	err := c.w.Wait(ctx, c.under...)
	c.under = c.under[:0]
	if err != nil {
		return err
	}
	return c.w.WaitSync(ctx)
}

// Estimate writes the estimated count of each item into dst, which is as long
// as items.
func (c *Client) Estimate(ctx context.Context, items []uint64, dst []int64) error {
	if len(dst) != len(items) {
		return fmt.Errorf("sketch: room for %d estimates of %d items", len(dst), len(items))
	}
	if err := c.send(ctx); err != nil {
		return err
	}
	c.keys = c.keys[:0]
	per := uint32(c.sketch.perKey())
	for _, x := range items {
		for row := range c.sketch.Depth {
			c.keys = append(c.keys, c.first+godwit.Key(c.sketch.cell(x, row)/per))
		}
	}
	dim := 2 * int(per)
	c.vals = buffer.Sized(c.vals, dim*len(c.keys))
	if err := c.w.Pull(ctx, c.keys, c.vals); err != nil {
		return err
	}
	vals := c.vals
	for i, x := range items {
		dst[i] = math.MaxInt64
		for row := range c.sketch.Depth {
			at := 2 * (c.sketch.cell(x, row) % per)
			dst[i] = min(dst[i], optim.Count(vals[at], vals[at+1]))
			vals = vals[dim:]
		}
	}
	return nil
}

// total adds up the cells from … to-1 of a row.
func (c *Client) total(ctx context.Context, row, from, to int) (sum int64, err error) {
	if from >= to {
		return 0, nil
	}
	per := c.sketch.perKey()
	from, to = row*c.sketch.Width+from, row*c.sketch.Width+to // numbers of cells
	key, end := from/per, (to+per-1)/per
	err = tables.Read(ctx, c.w, c.first+godwit.Key(key), end-key, 2*per, func(at int, vals []float32) error {
		begin := (key + at) * per // the number of the first cell
		for i := max(from-begin, 0); i < min(to-begin, len(vals)/2); i++ {
			sum += optim.Count(vals[2*i], vals[2*i+1])
		}
		return nil
	})
	return sum, err
}
