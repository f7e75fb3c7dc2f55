package train

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
)

// Rows reads the rows of a table from somewhere else than a model: it writes a row's
// value into dst and reports whether it has one. It may be called concurrently. A table
// of which nil is no part of what was trained.
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
	// Continue notes it, at the node that sets the rows, before training.
	Continue(src export.Source, node int) error
}

// setFloats bounds what is set at once.
const setFloats = 1 << 16

// SetRows sets the rows of a worker's model that rows has, a function for each table,
// and returns how many rows of each table rows lacks. These stay as they are. Rows that
// are all zero are not set where the table begins with zeros, so that they take no
// memory. One worker of the run does it, before training, and all call [godwit.Worker.SyncAll] then.
func SetRows(ctx context.Context, w godwit.Worker, rows []Rows) (lacking []uint64, err error) {
	m := w.Model()
	if len(rows) != m.Tables() {
		return nil, fmt.Errorf("train: rows of %d tables, the model has %d", len(rows), m.Tables())
	}
	lacking = make([]uint64, len(rows))
	for i, read := range rows {
		if read == nil {
			continue
		}
		if lacking[i], err = setTable(ctx, w, i, read); err != nil {
			return nil, fmt.Errorf("train: setting the rows of table %q: %w", m.Table(i).Name, err)
		}
	}
	return lacking, nil
}

func setTable(ctx context.Context, w godwit.Worker, table int, read Rows) (lacking uint64, err error) {
	t := w.Model().Table(table)
	_, zero := t.Init.(godwit.Zero)
	var keys []godwit.Key
	var vals []float32
	flush := func() error {
		err := w.Set(ctx, keys, vals)
		keys, vals = keys[:0], vals[:0]
		return err
	}
	row := make([]float32, t.Dim)
	for r := range t.Rows {
		if !read(r, row) {
			lacking++
			continue
		}
		if zero && allZero(row) {
			continue
		}
		keys, vals = append(keys, w.Model().Key(table, r)), append(vals, row...)
		if len(vals) >= setFloats {
			if err := flush(); err != nil {
				return lacking, err
			}
		}
	}
	if len(keys) == 0 {
		return lacking, nil
	}
	return lacking, flush()
}

func allZero(x []float32) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}
