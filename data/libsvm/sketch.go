package libsvm

import "math"

// A sketch counts features by a byte a cell, in place of a map of all that
// occur: a count-min sketch (Cormode, Muthukrishnan, Journal of Algorithms 2005)
// with conservative update (Estan, Varghese, SIGCOMM 2002). Equal streams make
// equal sketches. It belongs to one goroutine.
//
// An estimate is never below the count, nor below 255 once the count is higher:
// a full cell stays full. In rows as wide as the stream is long, it exceeds the
// count by more than e with a probability of at most e^-4, 1.8%, over the choice
// of hashes; conservative update only lowers estimates.
type sketch struct {
	cells []uint8 // row after row
	width uint64  // of a row
	exact bool    // one row, with a cell for each feature
}

const (
	sketchRows = 4
	full       = math.MaxUint8
)

// newSketch is for so many entries of features below width. Where a cell for
// each feature takes no more memory than the rows would, it counts exactly.
func newSketch(entries, width int) *sketch {
	if width/sketchRows <= entries {
		return &sketch{cells: make([]uint8, width), exact: true}
	}
	n := max(entries, 1)
	return &sketch{cells: make([]uint8, sketchRows*n), width: uint64(n)}
}

// add counts a feature once more.
func (s *sketch) add(feature uint32) {
	if s.exact {
		if s.cells[feature] < full {
			s.cells[feature]++
		}
		return
	}
	at := s.places(feature)
	least := s.least(at)
	if least == full {
		return
	}
	// The larger cells hold others' counts too, and enough for this feature.
	for _, i := range at {
		if s.cells[i] == least {
			s.cells[i]++
		}
	}
}

// count estimates how often a feature was added, 0 … 255.
func (s *sketch) count(feature uint32) int {
	if s.exact {
		return int(s.cells[feature])
	}
	return int(s.least(s.places(feature)))
}

func (s *sketch) least(at [sketchRows]uint64) uint8 {
	least := uint8(full)
	for _, i := range at {
		least = min(least, s.cells[i])
	}
	return least
}

// places returns a feature's cell in each row.
func (s *sketch) places(feature uint32) (at [sketchRows]uint64) {
	for row := range at {
		// Two rounds of multiplying and folding (as in splitmix64), from another
		// start for each row.
		h := uint64(feature) ^ uint64(row+1)*0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
		at[row] = uint64(row)*s.width + (h>>32)*s.width>>32
	}
	return at
}
