package mf

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// Import implements [train.Importer]: factors are found by the names of rows and
// columns. The models must have factors of one length, and both have biases or none.
// Where the mean of the cells is another one than the trained model's, the biases of
// rows make up for it.
func (t *Task) Import(src export.Source) ([]train.Rows, error) {
	rows, err := t.imported(src)
	if err != nil {
		return nil, fmt.Errorf("mf: the trained model does not fit: %w", err)
	}
	return rows, nil
}

func (t *Task) imported(src export.Source) ([]train.Rows, error) {
	d := t.cfg.Dim
	if err := tables.Same(src, "mf", "factorization", d); err != nil {
		return nil, err
	}
	switch biased, err := biased(src, d); {
	case err != nil:
		return nil, err
	case biased != t.cfg.Biased:
		return nil, fmt.Errorf("biased is %v of it, and %v is wanted", biased, t.cfg.Biased)
	}
	width := t.cfg.width()
	cols := width
	var row, col func(dst, row []float32)
	if t.cfg.Biased {
		cols = d + 2
		row = func(dst, x []float32) { copy(dst, x[:d]); dst[d] = x[d] - t.mean }
		col = func(dst, x []float32) { copy(dst, x[:d]); dst[d] = x[d+1] }
	}
	rows, err := tables.NamedOf(src, RowFile, RowNamesFile, cols)
	if err != nil {
		return nil, err
	}
	columns, err := tables.NamedOf(src, ColumnFile, ColumnNamesFile, cols)
	if err != nil {
		return nil, err
	}
	return []train.Rows{rows.By(t.set.RowName, row), columns.By(t.set.ColName, col)}, nil
}

// biased reports whether a model has biases: two more columns than the factors.
func biased(src export.Source, dim int) (bool, error) {
	f := src.Describe().File(RowFile)
	if f == nil || len(f.Shape) != 2 {
		return false, fmt.Errorf("it has no %s", RowFile)
	}
	return f.Shape[1] == dim+2, nil
}

// Names returns the names of the rows and columns of a trained model.
func Names(src export.Source) (rows, cols []string, err error) {
	if rows, err = src.Lines(RowNamesFile); err != nil {
		return nil, nil, err
	}
	cols, err = src.Lines(ColumnNamesFile)
	return rows, cols, err
}

// Predict writes the model's values of cells into dst, which is as long; the values of
// the cells are not looked at.
func (t *Task) Predict(ctx context.Context, w godwit.Worker, cells []ratings.Rating, dst []float32) error {
	k, err := t.keys(w.Model())
	if err != nil {
		return err
	}
	ev := &evaluator{task: t, w: w, num: numberer{keys: k}}
	for len(cells) > 0 {
		n := min(chunk, len(cells))
		if err := ev.pull(ctx, cells[:n]); err != nil {
			return err
		}
		for i, c := range ev.batch.Data.cells {
			p, q := t.sides(ev.vals, &ev.batch.Data, c)
			dst[i] = t.forward(p, q)
		}
		cells, dst = cells[n:], dst[n:]
	}
	return nil
}

// pull reads the rows and columns of a few cells.
func (ev *evaluator) pull(ctx context.Context, cells []ratings.Rating) error {
	b := &ev.batch
	ev.num.begin(b)
	for _, c := range cells {
		ev.num.add(b, c)
	}
	ev.num.end(b)
	ev.vals = buffer.Sized(ev.vals, len(b.Keys)*ev.task.cfg.width())
	return ev.w.Pull(ctx, b.Keys, ev.vals)
}
