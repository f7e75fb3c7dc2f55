package mf

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// The files that [Task.Export] writes.
const (
	RowFile         = "rows.npy"
	RowNamesFile    = "rows.txt"
	ColumnFile      = "columns.npy"
	ColumnNamesFile = "columns.txt"
)

// Export writes the factors into dir, which it makes where needed, as NumPy
// arrays of float32 with a line for each row and each column, and beside each
// array a text file with what they are called. The product of the arrays is the
// prediction, rows · columnsᵀ: with biases, a line is the vector, then μ + b and
// 1 for a row, 1 and c for a column.
//
// Each file appears complete or not at all. One node of the run calls it, with
// a worker that nothing else uses meanwhile, after [train.Run].
func (t *Task) Export(ctx context.Context, w godwit.Worker, dir string) error {
	if err := t.export(ctx, w, dir); err != nil {
		return fmt.Errorf("mf: export: %w", err)
	}
	return nil
}

func (t *Task) export(ctx context.Context, w godwit.Worker, dir string) error {
	k, err := t.keys(w.Model())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	d, width := t.cfg.Dim, t.cfg.width()
	rows := tables.Array{Path: filepath.Join(dir, RowFile), First: k.row, Rows: t.set.Rows, Dim: width, Cols: width}
	cols := tables.Array{Path: filepath.Join(dir, ColumnFile), First: k.column, Rows: t.set.Cols, Dim: width, Cols: width}
	if t.cfg.Biased {
		rows.Cols, cols.Cols = d+2, d+2
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
		if err := a.Write(ctx, w); err != nil {
			return err
		}
	}
	if err := tables.WriteNames(filepath.Join(dir, RowNamesFile), names(t.set.Rows, t.set.RowName)); err != nil {
		return err
	}
	return tables.WriteNames(filepath.Join(dir, ColumnNamesFile), names(t.set.Cols, t.set.ColName))
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
