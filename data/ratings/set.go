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

	mended int // lines that were not UTF-8
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
// It leaves each row and each column its last cell to train, so that fewer may
// be moved. The others keep their order.
func (s *Set) HoldOut(share float64, seed uint64) {
	want := int(share * float64(len(s.Train)))
	rows, cols := s.Counts()
	out := make([]bool, len(s.Train))
	r := rand.New(rand.NewPCG(seed, 0x686f6c646f7574))
	for _, i := range r.Perm(len(s.Train)) {
		if want == 0 {
			break
		}
		x := s.Train[i]
		if rows[x.Row] == 1 || cols[x.Col] == 1 {
			continue
		}
		rows[x.Row]--
		cols[x.Col]--
		out[i] = true
		want--
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
