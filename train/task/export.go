package task

import (
	"context"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// ExportTable writes the values of a table of the worker's model to an export, as a
// NumPy array of its name: a row for each of the table, in bounded memory. The layout
// says what the columns are. Implementations of [Task.Export] use it.
func ExportTable(ctx context.Context, w godwit.Worker, s *export.Set, table int, layout string) error {
	t := w.Model().Table(table)
	a := tables.Array{File: t.Name + ".npy", Layout: layout, First: w.Model().Key(table, 0), Rows: int(t.Rows), Dim: t.Dim, Cols: t.Dim}
	return a.Write(ctx, w, s)
}
