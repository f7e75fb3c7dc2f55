package ratings

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
	out, next := make([]bool, len(s.Train)), s.copies(rows)
	r := rand.New(rand.NewPCG(seed, 0x686f6c646f7574))
	for _, i := range r.Perm(len(s.Train)) {
		if want == 0 {
			break
		}
		n := 1 // cells that are of one place
		for j := next[i]; j != i; j = next[j] {
			n++
		}
		x := s.Train[i]
		if out[i] || n > want || rows[x.Row] == n || cols[x.Col] == n {
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
// of each, and the first one of the last. rows are how many cells the rows have.
func (s *Set) copies(rows []int) []int {
	end, sum := make([]int, len(rows)), 0
	for row, n := range rows {
		end[row] = sum
		sum += n
	}
	byRow := make([]int, len(s.Train))
	for i, x := range s.Train {
		byRow[end[x.Row]] = i
		end[x.Row]++
	}
	next := make([]int, len(s.Train))
	for row, n := range rows {
		of := byRow[end[row]-n : end[row]]
		slices.SortFunc(of, func(i, j int) int { return cmp.Compare(s.Train[i].Col, s.Train[j].Col) })
		first := 0
		for k, i := range of {
			if k+1 < n && s.Train[of[k+1]].Col == s.Train[i].Col {
				next[i] = of[k+1]
				continue
			}
			next[i] = of[first]
			first = k + 1
		}
	}
	return next
}

// known counts the cells held out that are cells to train, too, whatever their value.
func (s *Set) known(held []Rating) (n int) {
	type place struct{ row, col uint32 }
	train := make(map[place]bool, len(held))
	for _, x := range held {
		train[place{x.Row, x.Col}] = false
	}
	for _, x := range s.Train {
		if _, ok := train[place{x.Row, x.Col}]; ok {
			train[place{x.Row, x.Col}] = true
		}
	}
	for _, x := range held {
		if train[place{x.Row, x.Col}] {
			n++
		}
	}
	return n
}
