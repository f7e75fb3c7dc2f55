package ratings

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
)

// A Rating is a cell of a matrix.
type Rating struct {
	Row, Col uint32  // from 0 on
	Value    float32 // finite
}

// A Set is a sparse matrix in parts.
type Set struct {
	// Rows and Cols are the numbers of rows and columns.
	Rows, Cols int
	// RowNames and ColNames are what rows and columns are called. nil: by their
	// numbers, from 1 on.
	RowNames, ColNames []string
	// Train is to learn from, Valid for evaluations during training, Test at the end. Valid
	// or Test may be empty.
	Train, Valid, Test []Rating

	mended   int      // lines that were not UTF-8
	headings []string // first lines that were passed over, with their file
}

// RowName returns what a row is called.
func (s *Set) RowName(row int) string { return name(s.RowNames, row) }

// ColName returns what a column is called.
func (s *Set) ColName(col int) string { return name(s.ColNames, col) }

func name(names []string, i int) string {
	if names == nil {
		return strconv.Itoa(i + 1)
	}
	return names[i]
}

// Mean returns the mean of the values to train, 0 where there are none.
func (s *Set) Mean() float32 {
	sum := 0.0
	for _, r := range s.Train {
		sum += float64(r.Value)
	}
	return float32(sum / math.Max(float64(len(s.Train)), 1))
}

// Counts returns how many of the cells to train each row and each column has.
func (s *Set) Counts() (rows, cols []int) {
	rows, cols = make([]int, s.Rows), make([]int, s.Cols)
	for _, r := range s.Train {
		rows[r.Row]++
		cols[r.Col]++
	}
	return rows, cols
}

// Check returns what is wrong with the set: numbers of rows and columns, and cells
// that lie outside or have no finite value.
func (s *Set) Check() error {
	for _, x := range []struct {
		what  string
		n     int
		names []string
	}{{"rows", s.Rows, s.RowNames}, {"columns", s.Cols, s.ColNames}} {
		if x.n < 1 || x.n > math.MaxInt32 {
			return fmt.Errorf("ratings: a matrix of %d %s, want 1 … %d", x.n, x.what, math.MaxInt32)
		}
		if x.names != nil && len(x.names) != x.n {
			return fmt.Errorf("ratings: %d names for %d %s", len(x.names), x.n, x.what)
		}
	}
	for _, part := range []struct {
		name  string
		cells []Rating
	}{{"train", s.Train}, {"valid", s.Valid}, {"test", s.Test}} {
		for i, r := range part.cells {
			if int(r.Row) >= s.Rows || int(r.Col) >= s.Cols {
				return fmt.Errorf("ratings: cell %d of %s is in row %d and column %d, counted from 0, but there are %d rows and %d columns", i, part.name, r.Row, r.Col, s.Rows, s.Cols)
			}
			if x := float64(r.Value); math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("ratings: cell %d of %s is %v, want a finite number", i, part.name, r.Value)
			}
		}
	}
	return nil
}

// HoldOut moves a share of the cells to train, drawn by lot, to the end of Test.
// It leaves each row and each column its last cell to train, and a cell that stands there
// more than once moves with all its copies, so that fewer may be moved. The others keep
// their order.
func (s *Set) HoldOut(share float64, seed uint64) {
	want := int(share * float64(len(s.Train)))
	rows, cols := s.Counts()
	out, next, seen := make([]bool, len(s.Train)), s.copies(), make([]bool, len(s.Train))
	r := rand.New(rand.NewPCG(seed, 0x686f6c646f7574))
	for _, i := range r.Perm(len(s.Train)) {
		if want == 0 {
			break
		}
		n := 0 // cells that are of one place, of which the first one decides for all
		for j := i; !seen[j]; j = next[j] {
			seen[j] = true
			n++
		}
		x := s.Train[i]
		if n == 0 || n > want || rows[x.Row] == n || cols[x.Col] == n {
			continue
		}
		rows[x.Row] -= n
		cols[x.Col] -= n
		want -= n
		for j := i; !out[j]; j = next[j] {
			out[j] = true
		}
	}
	kept := s.Train[:0]
	for i, x := range s.Train {
		if out[i] {
			s.Test = append(s.Test, x)
		} else {
			kept = append(kept, x)
		}
	}
	s.Train = kept
}

// copies links the cells to train that stand in one row and column: it returns the next one
// of each, in a ring.
func (s *Set) copies() []int {
	next, last := make([]int, len(s.Train)), s.newAtRow()
	s.byRow(s.Train, func(row uint32, cells []int) {
		for _, i := range cells {
			next[i] = i
			if before, ok := last.swap(row, s.Train[i].Col, i); ok {
				next[i], next[before] = next[before], i
			}
		}
	})
	return next
}

// known counts the cells held out that are cells to train, too, whatever their value.
func (s *Set) known(held []Rating) (n int) {
	if len(held) == 0 {
		return 0
	}
	train := s.newAtRow()
	of := make([][]int, s.Rows)
	s.byRow(held, func(row uint32, cells []int) { of[row] = cells })
	s.byRow(s.Train, func(row uint32, cells []int) {
		if len(of[row]) == 0 {
			return
		}
		for _, i := range cells {
			train.swap(row, s.Train[i].Col, i)
		}
		for _, i := range of[row] {
			if train.has(row, held[i].Col) {
				n++
			}
		}
	})
	return n
}

// byRow calls f for each row that has any of some cells, with the positions of these.
func (s *Set) byRow(cells []Rating, f func(row uint32, cells []int)) {
	end := make([]int, s.Rows+1)
	for _, x := range cells {
		end[x.Row+1]++
	}
	for row := range s.Rows {
		end[row+1] += end[row]
	}
	order := make([]int, len(cells))
	for i, x := range cells {
		order[end[x.Row]] = i
		end[x.Row]++ // in the end, it is where the next row begins
	}
	first := 0
	for row := range s.Rows {
		if first < end[row] {
			f(uint32(row), order[first:end[row]:end[row]])
		}
		first = end[row]
	}
}

// atRow is the cells of one row at a time, by column.
type atRow struct {
	row  []uint64 // by column: of the cell, and one more
	cell []int
}

func (s *Set) newAtRow() *atRow { return &atRow{make([]uint64, s.Cols), make([]int, s.Cols)} }

// has reports whether there is a cell.
func (p *atRow) has(row, col uint32) bool { return p.row[col] == uint64(row)+1 }

// swap puts a cell in its place, and returns the one that was there.
func (p *atRow) swap(row, col uint32, cell int) (before int, ok bool) {
	before, ok = p.cell[col], p.has(row, col)
	p.row[col], p.cell[col] = uint64(row)+1, cell
	return before, ok
}
