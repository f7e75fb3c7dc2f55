package tables

import (
	"fmt"

	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/train"
)

// Same checks that a source is a model of a task, and of the kind and length of
// vectors that the task trains. An empty kind is not compared.
func Same(src export.Source, task, kind string, dim int) error {
	d := src.Describe()
	switch {
	case d.Task != task:
		return fmt.Errorf("it is a model of the task %s, not of %s", d.Task, task)
	case kind != "" && d.Model != kind:
		return fmt.Errorf("its model is %q, and %q is wanted", d.Model, kind)
	case d.Dim != dim:
		return fmt.Errorf("its dim is %d, and %d is wanted", d.Dim, dim)
	}
	return nil
}

// ArrayOf reads an array that must have so many columns.
func ArrayOf(src export.Source, name string, cols int) (*export.Values, error) {
	v, err := src.Array(name)
	if err == nil && v.Cols != cols {
		err = fmt.Errorf("%s has rows of %d floats, and %d are wanted", name, v.Cols, cols)
	}
	return v, err
}

// A Named array has a name for each row.
type Named struct {
	*export.Values
	Names []string
	rows  map[string]int
}

// NamedOf reads an array with the names of its rows.
func NamedOf(src export.Source, array, text string, cols int) (*Named, error) {
	v, err := ArrayOf(src, array, cols)
	if err != nil {
		return nil, err
	}
	names, err := src.Lines(text)
	if err != nil {
		return nil, err
	}
	if len(names) != v.Rows {
		return nil, fmt.Errorf("%s has %d rows, and %s names %d", array, v.Rows, text, len(names))
	}
	n := &Named{v, names, make(map[string]int, len(names))}
	for i, name := range names {
		if j, twice := n.rows[name]; twice {
			return nil, fmt.Errorf("%s names rows %d and %d alike: %q", text, j+1, i+1, name)
		}
		n.rows[name] = i
	}
	return n, nil
}

// Find returns the row of a name.
func (n *Named) Find(name string) (int, bool) {
	i, ok := n.rows[name]
	return i, ok
}

// By returns the rows of a table whose row i is called name(i): the first columns of the
// array, or what turn makes of a row, if it is not nil.
func (n *Named) By(name func(i int) string, turn func(dst, row []float32)) train.Rows {
	return func(row uint64, dst []float32) bool {
		i, ok := n.Find(name(int(row)))
		if !ok {
			return false
		}
		if turn == nil {
			copy(dst, n.Row(i))
		} else {
			turn(dst, n.Row(i))
		}
		return true
	}
}
