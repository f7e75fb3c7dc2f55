package train

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
)

// Rows reads the rows of a table from somewhere else than a model: it writes a row's
// value into dst and reports whether it has one. It may be called concurrently.
type Rows func(row uint64, dst []float32) bool

// An Importer is a task that can take over a trained model. The models of all tasks of
// Godwit can be taken over.
type Importer interface {
	// Import returns the rows of a trained model for each table of the task, by what they
	// are rows of: names, features or cells, not by their numbers. A model of another
	// shape or kind is an error, which says what differs.
	Import(src export.Source) ([]Rows, error)
}

// A Continuer is an [Importer] whose evaluations must know what the model had counted
// with which its training begins.
type Continuer interface {
	Importer
	// Continue notes it. The task of node 0 is told, before training.
	Continue(src export.Source) error
}

// setFloats bounds what is set at once.
const setFloats = 1 << 16

// SetRows sets the rows of a worker's model that rows has, a function for each table,
// and returns how many these are. All other rows stay as they are. Rows that are all
// zero are not set where the table begins with zeros, so that they take no memory. One
// worker of the run does it, before training, and all call [SyncAll] then.
func SetRows(ctx context.Context, w godwit.Worker, rows []Rows) (set int64, err error) {
	m := w.Model()
	if len(rows) != m.Tables() {
		return 0, fmt.Errorf("train: rows of %d tables, the model has %d", len(rows), m.Tables())
	}
	for i, read := range rows {
		n, err := setTable(ctx, w, i, read)
		if set += n; err != nil {
			return set, fmt.Errorf("train: setting the rows of table %q: %w", m.Table(i).Name, err)
		}
	}
	return set, nil
}

func setTable(ctx context.Context, w godwit.Worker, table int, read Rows) (set int64, err error) {
	t := w.Model().Table(table)
	_, zero := t.Init.(godwit.Zero)
	var keys []godwit.Key
	var vals []float32
	flush := func() error {
		set += int64(len(keys))
		err := w.Set(ctx, keys, vals)
		keys, vals = keys[:0], vals[:0]
		return err
	}
	row := make([]float32, t.Dim)
	for r := range t.Rows {
		if !read(r, row) || zero && allZero(row) {
			continue
		}
		keys, vals = append(keys, w.Model().Key(table, r)), append(vals, row...)
		if len(vals) >= setFloats {
			if err := flush(); err != nil {
				return set, err
			}
		}
	}
	if len(keys) == 0 {
		return set, nil
	}
	return set, flush()
}

func allZero(x []float32) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}
