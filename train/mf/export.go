package mf

import (
	"context"
	"fmt"
	"iter"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// The files that [Task.Export] writes.
const (
	RowFile         = "rows.npy"
	RowNamesFile    = "rows.txt"
	ColumnFile      = "columns.npy"
	ColumnNamesFile = "columns.txt"
)

// Export writes the factors as NumPy arrays of float32 with a line for each row and
// each column, and beside each array a text file with what they are called. The
// product of the arrays is the prediction, rows · columnsᵀ: with biases, a line is the
// vector, then μ + b and 1 for a row, 1 and c for a column.
//
// One node of the run calls it, with a worker that nothing else uses meanwhile, after
// [train.Run].
func (t *Task) Export(ctx context.Context, w godwit.Worker, s *export.Set) error {
	if err := t.export(ctx, w, s); err != nil {
		return fmt.Errorf("mf: export: %w", err)
	}
	return nil
}

func (t *Task) export(ctx context.Context, w godwit.Worker, s *export.Set) error {
	k, err := t.keys(w.Model())
	if err != nil {
		return err
	}
	d, width := t.cfg.Dim, t.cfg.width()
	s.Model.Model, s.Model.Dim, s.Model.Score = "factorization", d, "rows @ columns.T"
	rows := tables.Array{File: RowFile, Names: RowNamesFile, Layout: "the factor of the row", First: k.row, Rows: t.set.Rows, Dim: width, Cols: width}
	cols := tables.Array{File: ColumnFile, Names: ColumnNamesFile, Layout: "the factor of the column", First: k.column, Rows: t.set.Cols, Dim: width, Cols: width}
	if t.cfg.Biased {
		rows.Cols, cols.Cols = d+2, d+2
		rows.Layout += ", then the mean of all cells plus the row's bias, then 1"
		cols.Layout += ", then 1, then the column's bias"
		rows.Turn = func(dst, row []float32) {
			copy(dst, row[:d])
			dst[d], dst[d+1] = t.mean+row[d], 1
		}
		cols.Turn = func(dst, row []float32) {
			copy(dst, row[:d])
			dst[d], dst[d+1] = 1, row[d]
		}
	}
	for _, a := range []tables.Array{rows, cols} {
		if err := a.Write(ctx, w, s); err != nil {
			return err
		}
	}
	if err := tables.WriteLines(s, RowNamesFile, "names of rows", names(t.set.Rows, t.set.RowName)); err != nil {
		return err
	}
	return tables.WriteLines(s, ColumnNamesFile, "names of columns", names(t.set.Cols, t.set.ColName))
}

// names are name(0) … name(n-1).
func names(n int, name func(int) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(name(i)) {
				return
			}
		}
	}
}
