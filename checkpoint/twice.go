package checkpoint

import (
	"cmp"
	"maps"
)

// twice finds rows that a layer has twice: each that is read again, if it lies in one of the ranges of 64 rows that are watched. These
// are all ranges with rows, or of more than mostWatched an even share, so that many rows that are twice there are found in a layer of
// any size. The zero value has seen nothing of a layer. It takes some 10 MB at the most, and belongs to one goroutine.
type twice struct {
	words map[uint64]uint64 // by table and range: a bit for each row that was seen
	most  int               // ranges that are watched; 0: mostWatched
	skip  uint64            // ranges are not watched whose spread has one of these bits
}

const mostWatched = 1 << 18

// find returns a row of a block that was seen before.
func (w *twice) find(k *block) (twice uint64, found bool) {
	for _, row := range k.rows {
		at, bit := rangeOf(k.table, row)
		if spread(at)&w.skip != 0 {
			continue
		}
		word := w.words[at]
		if word&bit != 0 {
			return row, true
		}
		w.put(at, word|bit)
	}
	return 0, false
}

// put keeps the bits of a range, and watches half of the ranges only when there are too many.
func (w *twice) put(at, word uint64) {
	if w.words == nil {
		w.words, w.most = map[uint64]uint64{}, cmp.Or(w.most, mostWatched)
	}
	w.words[at] = word
	for len(w.words) > w.most {
		w.skip = w.skip<<1 | 1
		maps.DeleteFunc(w.words, func(at, _ uint64) bool { return spread(at)&w.skip != 0 })
	}
}

// rangeOf returns a number of the range of 64 rows that a row is in, and the row's bit within a word for that.
func rangeOf(table int, row uint64) (at, bit uint64) {
	return uint64(table)<<42 | row/64, 1 << (row % 64) // a row has 48 bits, a table 12
}

// spread returns a number whose lowest bits are as if drawn at random for each range.
func spread(at uint64) uint64 { return at * 0x9e3779b97f4a7c15 >> 32 }
