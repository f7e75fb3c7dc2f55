package ratings

import (
	"bytes"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit/data/lines"
	"github.com/godwit-ps/godwit/internal/plural"
)

// Names are what the rows and columns of a matrix are called, to find them by. They are
// immutable and may be used by any number of goroutines.
type Names struct{ rows, cols map[string]uint32 }

// NewNames numbers the names in their order.
func NewNames(rows, cols []string) *Names {
	n := &Names{make(map[string]uint32, len(rows)), make(map[string]uint32, len(cols))}
	for i, s := range rows {
		n.rows[s] = uint32(i)
	}
	for i, s := range cols {
		n.cols[s] = uint32(i)
	}
	return n
}

// Row returns the number of a row.
func (n *Names) Row(name string) (uint32, bool) { i, ok := n.rows[name]; return i, ok }

// Col returns the number of a column.
func (n *Names) Col(name string) (uint32, bool) { i, ok := n.cols[name]; return i, ok }

// LoadCells reads the cells of a file whose rows and columns have such names, and counts
// the others.
func LoadCells(path string, names *Names) (cells []Rating, others int, err error) {
	l := newLoader()
	if l.set.Train, err = l.file(path); err != nil {
		return nil, 0, err
	}
	s := l.done()
	const none = math.MaxUint32
	numbers := func(n int, name func(int) string, ids map[string]uint32) []uint32 {
		x := make([]uint32, n)
		for i := range x {
			if id, ok := ids[name(i)]; ok {
				x[i] = id
			} else {
				x[i] = none
			}
		}
		return x
	}
	rows, cols := numbers(s.Rows, s.RowName, names.rows), numbers(s.Cols, s.ColName, names.cols)
	for _, c := range s.Train {
		if c.Row, c.Col = rows[c.Row], cols[c.Col]; c.Row == none || c.Col == none {
			others++
		} else {
			cells = append(cells, c)
		}
	}
	return cells, others, nil
}

// Fields splits a line of a question into row and column: at tabs, "::" or commas,
// whichever it has first in this order, else at spaces. Further fields, as a cell has
// them, are passed over. What is not UTF-8 becomes U+FFFD, as in files; else they alias the line.
func Fields(line []byte) (row, col []byte, err error) {
	line, _ = lines.Mend(line)
	fields := bytes.Fields(line)
	for _, sep := range []string{"\t", "::", ","} {
		if bytes.Contains(line, []byte(sep)) {
			fields = bytes.Split(line, []byte(sep))
			break
		}
	}
	if len(fields) < 2 || len(fields) > 4 {
		return nil, nil, fmt.Errorf("%s, want row and column, separated by a tab, \"::\", a comma or spaces", plural.Of(len(fields), "field"))
	}
	for i, what := range []string{"row", "column"} {
		if err := checkName(what, fields[i]); err != nil {
			return nil, nil, err
		}
	}
	return fields[0], fields[1], nil
}
