package sketch

import (
	"math/bits"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train/internal/distinct"
)

// A tally counts what was added to the cells of a sketch and is not sent yet. A small
// sketch has a number for each cell; of a large one, the cells that were added to are
// found by a hash table. It belongs to one goroutine.
type tally struct {
	sketch Sketch
	items  int      // what so many items added is to be sent
	dense  []uint32 // of each cell, where there are few
	cells  distinct.Rows
	counts []uint32 // of the cells
}

const (
	// maxDense is how many cells have a number each: 16 MiB.
	maxDense = 1 << 22
	// gathered is how many cells of a large sketch are sent at once: items that are added meanwhile to the
	// same cells cost nothing more, and messages are large. Four times as many as are in a processor's
	// first cache took a quarter less processor time on four nodes, and no more on one.
	gathered = 1 << 16
	// maxPushed is how many cells of a small sketch are pushed at once: 2 MiB.
	maxPushed = 1 << 18
	// perCell items are gathered for each cell of a small sketch before all is sent, so that
	// sending costs a fraction of counting.
	perCell = 4
)

func newTally(s Sketch) tally {
	if !s.small() {
		return tally{sketch: s, items: maxItems}
	}
	t := tally{sketch: s, items: min(perCell*s.cells(), maxItems)}
	t.dense = make([]uint32, int(s.Table().Rows)*s.perKey()) // of whole keys
	return t
}

// add counts each item once more.
func (t *tally) add(items []uint64) {
	if t.dense == nil {
		t.addSparse(items)
		return
	}
	var hashes [512]uint64
	for salt := t.sketch.salt(); len(items) > 0; {
		n := min(len(items), len(hashes))
		for i, x := range items[:n] {
			hashes[i] = godwit.Hash64(x ^ salt)
		}
		items = items[n:]
		row := 0
		for ; row+1 < t.sketch.Depth; row += 2 {
			t.addRows(row, hashes[:n])
		}
		if row < t.sketch.Depth {
			t.addRow(row, hashes[:n])
		}
	}
}

// addRow counts each hash once more in a row of the sketch.
func (t *tally) addRow(row int, hashes []uint64) {
	width := uint64(t.sketch.Width)
	cells, multiplier := t.row(row)
	for _, h := range hashes {
		cells[column(h, multiplier, width)]++
	}
}

// addRows counts each hash once more in a row of the sketch and in the next one. Multiplications are what counting waits for, so that a shift replaces one
// where it gives the same column.
func (t *tally) addRows(row int, hashes []uint64) {
	width := uint64(t.sketch.Width)
	first, m := t.row(row)
	second, n := t.row(row + 1)
	if width&(width-1) == 0 && width > 1 {
		shift := 64 - (bits.Len64(width)-1)&63
		for _, h := range hashes {
			first[h*m>>(shift&63)]++
			second[h*n>>(shift&63)]++
		}
		return
	}
	for _, h := range hashes {
		first[column(h, m, width)]++
		second[column(h, n, width)]++
	}
}

// row returns the cells of a row of the sketch, and its multiplier.
func (t *tally) row(row int) (cells []uint32, multiplier uint64) {
	return t.dense[row*t.sketch.Width:][:t.sketch.Width], t.sketch.multiplier(row)
}

func (t *tally) addSparse(items []uint64) {
	for _, x := range items {
		for row := range t.sketch.Depth {
			n := t.cells.Add(t.sketch.cell(x, row))
			if int(n) == len(t.counts) {
				t.counts = append(t.counts, 0)
			}
			t.counts[n]++
		}
	}
}

// filled reports whether so many cells of a large sketch were added to that they are to be sent.
func (t *tally) filled() bool { return t.dense == nil && t.cells.Len() >= gathered }

// take appends the keys with cells that were added to, and what was added, as pushes, and forgets them. It begins with
// a cell and returns with which to go on, 0 after the last. Of a small sketch, keys ascend. The table's first key is first.
func (t *tally) take(first godwit.Key, from int, keys []godwit.Key, adds []float32) ([]godwit.Key, []float32, int) {
	if t.dense == nil {
		for i, cell := range t.cells.All() {
			keys, adds = append(keys, first+godwit.Key(cell)), append(adds, float32(t.counts[i]), 0)
		}
		t.cells.Reset()
		t.counts = t.counts[:0]
		return keys, adds, 0
	}
	per := t.sketch.perKey()
	to := min(from+maxPushed, len(t.dense))
	for ; from < to; from += per {
		cells := t.dense[from:][:per]
		any := uint32(0)
		for _, n := range cells {
			any |= n
		}
		if any == 0 {
			continue
		}
		keys = append(keys, first+godwit.Key(from/per))
		n := len(adds)
		adds = slices.Grow(adds, 2*per)[:n+2*per]
		for i, x := range cells {
			adds[n+2*i], adds[n+2*i+1] = float32(x), 0
		}
		clear(cells)
	}
	if to == len(t.dense) {
		to = 0
	}
	return keys, adds, to
}
