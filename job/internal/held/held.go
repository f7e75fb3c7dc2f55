// Package held keeps the rows of a cut in memory ([Rows]), so that they can be read, and written, while training goes on.
package held

import (
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train"
)

// Rows are rows of a model, values and the states of their rules. Any number of goroutines may write them; then any number may read.
type Rows struct {
	writing sync.Mutex
	tables  []table
}

// A table has the rows of one table, in the order in which they were written, in slabs: so they are never copied.
type table struct {
	most       uint64         // rows that it may have
	dim, width int            // floats of a value, and of a row
	query      godwit.Querier // makes values of rows; nil: they are part of these
	rows       []uint64
	slabs      [][]float32
	dense      []uint32 // 1 and the place of each row; of small tables
	sparse     map[uint64]uint32
}

const (
	slabRows  = 1 << 12
	denseRows = 1 << 22 // the largest table whose places are an array
)

// New returns an empty set of rows of a model.
func New(m *godwit.Model) *Rows {
	h := &Rows{tables: make([]table, m.Tables())}
	for i := range h.tables {
		t := &h.tables[i]
		t.dim, t.width = m.Table(i).Dim, m.TableRowLen(i)
		t.query, _ = m.Table(i).Rule.(godwit.Querier)
		if t.most = m.Table(i).Rows; t.most <= denseRows {
			t.dense = make([]uint32, t.most)
		} else {
			t.sparse = map[uint64]uint32{}
		}
	}
	return h
}

// Write adds rows of a table, which it has not yet, as a [node.Sink] gets them.
func (h *Rows) Write(of int, rows []uint64, floats []float32) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	t := &h.tables[of]
	for i, row := range rows {
		if len(t.rows)%slabRows == 0 {
			t.slabs = append(t.slabs, make([]float32, 0, min(slabRows, int(t.most)-len(t.rows))*t.width))
		}
		s := &t.slabs[len(t.slabs)-1]
		*s = append(*s, floats[i*t.width:(i+1)*t.width]...)
		t.rows = append(t.rows, row)
		if t.dense != nil {
			t.dense[row] = uint32(len(t.rows))
		} else {
			t.sparse[row] = uint32(len(t.rows))
		}
	}
	return nil
}

// Each hands all rows to a function, as they were written, many at once. It ends with the function's first error.
func (h *Rows) Each(sink func(table int, rows []uint64, floats []float32) error) error {
	for i, t := range h.tables {
		for n, s := range t.slabs {
			from := n * slabRows
			if err := sink(i, t.rows[from:min(from+slabRows, len(t.rows))], s); err != nil {
				return err
			}
		}
	}
	return nil
}

// Values returns what reads the values of each table, as pulls return them.
func (h *Rows) Values() []train.Rows {
	all := make([]train.Rows, len(h.tables))
	for i := range h.tables {
		all[i] = h.tables[i].value
	}
	return all
}

// value is a [train.Rows].
func (t *table) value(row uint64, dst []float32) bool {
	var at uint32
	if t.dense != nil {
		at = t.dense[row]
	} else {
		at = t.sparse[row]
	}
	if at == 0 {
		return false
	}
	n := int(at-1) % slabRows * t.width
	floats := t.slabs[(at-1)/slabRows][n : n+t.width]
	if t.query != nil {
		t.query.Query(dst, floats[:t.dim], floats[t.dim:])
	} else {
		copy(dst, floats[:t.dim])
	}
	return true
}
