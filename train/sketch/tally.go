package sketch

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train/internal/distinct"
)

// A tally counts what was added to the cells of a sketch and is not sent yet. A small
// sketch has a number for each cell; of a large one, the cells that were added to are
// found by a hash table. It belongs to one goroutine.
type tally struct {
	sketch Sketch
	full   int      // so many cells are to be sent, or …
	items  int      // … what so many items added
	dense  []uint32 // of each cell, where there are few
	filled int      // how many of these are not 0
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
	// maxGathered bounds what is sent at once of a small sketch: 4 MiB.
	maxGathered = 1 << 18
	// perCell items are gathered for each cell of a small sketch before all is sent, so that
	// sending costs a fraction of counting.
	perCell = 4
)

func newTally(s Sketch) tally {
	cells := s.Depth * s.Width
	if cells > maxDense {
		return tally{sketch: s, full: gathered, items: maxItems}
	}
	return tally{sketch: s, full: maxGathered, items: min(perCell*cells, maxItems), dense: make([]uint32, cells)}
}

// add counts each item once more.
func (t *tally) add(items []uint64) {
	if t.dense == nil {
		t.addSparse(items)
		return
	}
	// Row by row, so that the cells under way are those of one row.
	filled, width := 0, t.sketch.Width
	for row := range t.sketch.Depth {
		cells, start := t.dense[row*width:][:width], t.sketch.start(row)
		for _, x := range items {
			n := &cells[column(x^start, width)]
			if *n == 0 {
				filled++
			}
			*n++
		}
	}
	t.filled += filled
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

// len returns how many cells were added to.
func (t *tally) len() int { return t.filled + t.cells.Len() }

// take appends the keys of the cells that were added to, and what was added, as pushes, and
// begins anew. Of a small sketch, keys ascend. The first cell's key is first.
func (t *tally) take(first godwit.Key, keys []godwit.Key, adds []float32) ([]godwit.Key, []float32) {
	for i, cell := range t.cells.All() {
		keys, adds = append(keys, first+godwit.Key(cell)), append(adds, float32(t.counts[i]), 0)
	}
	t.cells.Reset()
	t.counts = t.counts[:0]
	if t.filled > 0 {
		for cell, n := range t.dense {
			if n != 0 {
				keys, adds = append(keys, first+godwit.Key(cell)), append(adds, float32(n), 0)
			}
		}
		clear(t.dense)
		t.filled = 0
	}
	return keys, adds
}
