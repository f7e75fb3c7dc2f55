package sketch

import (
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// Import implements [train.Importer]: the counts of a sketch of the same depth, width and
// seed, to which this stream's are added.
func (t *Task) Import(src export.Source) ([]train.Rows, error) {
	cells, err := t.imported(src)
	if err != nil {
		return nil, err
	}
	return []train.Rows{func(row uint64, dst []float32) bool {
		// A row of the table has several cells, which lie one after the other here as well.
		clear(dst)
		copy(dst, cells.Floats[int(row)*len(dst):])
		return true
	}}, nil
}

// Continue implements [train.Continuer]: the sketch has counted items of another stream.
func (t *Task) Continue(src export.Source, node int) error {
	cells, err := t.imported(src)
	if err != nil {
		return err
	}
	before := int64(0)
	for i := range t.cfg.Width {
		before += optim.Count(cells.Row(i)[0], cells.Row(i)[1])
	}
	t.beforeAt.Store(int64(node))
	t.before.Store(before)
	return nil
}

func (t *Task) imported(src export.Source) (*export.Values, error) {
	cells, err := t.cells(src)
	if err != nil {
		return nil, fmt.Errorf("sketch: the counted sketch does not fit: %w", err)
	}
	return cells, nil
}

func (t *Task) cells(src export.Source) (*export.Values, error) {
	if err := tables.Same(src, "sketch", "", 0); err != nil {
		return nil, err
	}
	run := src.Describe().Run
	if run == nil {
		return nil, errors.New("it does not say by which seed it hashes")
	}
	if run.Seed != t.cfg.Seed {
		return nil, fmt.Errorf("its seed is %d, and %d is wanted: an item has other cells", run.Seed, t.cfg.Seed)
	}
	cells, err := tables.ArrayOf(src, CountFile, 2)
	if err != nil {
		return nil, err
	}
	if want := t.cfg.Depth * t.cfg.Width; cells.Rows != want {
		return nil, fmt.Errorf("it has %d cells, and %d rows of %d are wanted", cells.Rows, t.cfg.Depth, t.cfg.Width)
	}
	if src.Describe().Score != t.score() {
		return nil, errors.New("its items have other cells than this build gives them (model.json says by which formula, as score): count them anew")
	}
	return cells, nil
}
