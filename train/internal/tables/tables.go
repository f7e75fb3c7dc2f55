// Package tables finds a task's tables in a model and writes their rows to files.
package tables

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/atomicfile"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/npy"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

// Find returns the first keys of the tables with the names of want. The model must have
// them with the same sizes and rules, and may have others.
func Find(m *godwit.Model, want []godwit.Table) ([]godwit.Key, error) {
	first := make([]godwit.Key, len(want))
	for i, t := range want {
		j := 0
		for j < m.Tables() && m.Table(j).Name != t.Name {
			j++
		}
		if j == m.Tables() {
			return nil, fmt.Errorf("the model has no table %q: make it of the task's tables", t.Name)
		}
		if t.Rule == nil {
			t.Rule = godwit.Add{}
		}
		if got := m.Table(j); got.Rows != t.Rows || got.Dim != t.Dim || got.Rule.Name() != t.Rule.Name() {
			return nil, fmt.Errorf("table %q has %d rows of %d floats under %s, the task needs %d of %d under %s: make it of the task's tables",
				t.Name, got.Rows, got.Dim, got.Rule.Name(), t.Rows, t.Dim, t.Rule.Name())
		}
		first[i] = m.Key(j, 0)
	}
	return first, nil
}

// blockFloats bounds what is pulled at once.
const blockFloats = 1 << 20

// Read pulls n rows of one table, each of dim floats, in blocks of bounded size. It calls
// do with the values of each block and the number of the block's first row, counted from
// 0. If the table is initialized with zeros, it pulls only rows in use, so that reading
// does not allocate the others.
func Read(ctx context.Context, w godwit.Worker, first godwit.Key, rows, dim int, do func(at int, vals []float32) error) error {
	if rows == 0 {
		return nil
	}
	i, _ := w.Model().Locate(first)
	_, zero := w.Model().Table(i).Init.(godwit.Zero)
	pull := godwit.PullRange
	if zero {
		pull = used
	}
	block := min(rows, max(1, blockFloats/dim))
	vals := make([]float32, block*dim)
	for from := 0; from < rows; from += block {
		n := min(block, rows-from)
		at := first + godwit.Key(from)
		if err := pull(ctx, w, at, at+godwit.Key(n), vals[:n*dim]); err != nil {
			return err
		}
		if err := do(from, vals[:n*dim]); err != nil {
			return err
		}
	}
	return nil
}

// used is godwit.PullRange for keys of one table, but pulls only those in use.
func used(ctx context.Context, w godwit.Worker, first, end godwit.Key, dst []float32) error {
	clear(dst)
	for r, err := range godwit.Rows(ctx, w, first, end, godwit.NoNode) {
		if err != nil {
			return err
		}
		copy(dst[int(r.Key-first)*len(r.Value):], r.Value)
	}
	return nil
}

// An Array is a file of rows of a table.
type Array struct {
	File   string
	Names  string // the file with the names of its rows; empty: none
	Layout string // what the columns are

	First godwit.Key // of the rows
	Rows  int        // of the file
	Dim   int        // floats of a row in the table, and
	Cols  int        // in the file
	// Turn writes the file's Cols floats of a row, of one after the other; nil
	// copies the first ones.
	Turn func(dst, row []float32)
	// Per is how many rows of the file a row of the table has, one after the other; 0: one.
	Per int
}

// Write reads the rows and writes them to an export, as a NumPy array of float32.
func (a Array) Write(ctx context.Context, w godwit.Worker, s *export.Set) (err error) {
	s.Add(export.File{Name: a.File, Kind: export.Array, Shape: []int{a.Rows, a.Cols}, Names: a.Names, Layout: a.Layout})
	out, err := npy.Create(s.Path(a.File), a.Rows, a.Cols)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	line := make([]float32, a.Cols)
	per := max(a.Per, 1)
	dim := a.Dim / per
	return Read(ctx, w, a.First, (a.Rows+per-1)/per, a.Dim, func(at int, vals []float32) error {
		for i := range min(len(vals)/dim, a.Rows-at*per) {
			a.turn(line, buffer.Row(vals, i, dim))
			if err := out.WriteRows(line); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a Array) turn(dst, row []float32) {
	if a.Turn == nil {
		copy(dst, row)
		return
	}
	a.Turn(dst, row)
}

// WriteLines writes a text to an export. The layout says what its lines are.
func WriteLines(s *export.Set, file, layout string, lines iter.Seq[string]) error {
	n := 0
	err := atomicfile.Write(s.Path(file), func(w io.Writer) error {
		for line := range lines {
			n++
			if _, err := io.WriteString(w, line+"\n"); err != nil {
				return err
			}
		}
		return nil
	})
	s.Add(export.File{Name: file, Kind: export.Text, Shape: []int{n}, Layout: layout})
	return err
}
