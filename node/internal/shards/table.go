package shards

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
)

// A Table is what an access needs to know of a table of the model.
type Table struct {
	Dim    int  // floats of a value
	Floats int  // floats of a row: the value and the rule's state
	Single bool // a push changes a row as it is: no filter does anything to it
	Index  int  // in the model

	first  godwit.Key
	rows   godwit.Key
	update *protocol.Update
	query  godwit.Querier // makes what pulls get; nil: they get the value
}

// Has reports whether the key is one of the table's.
func (t *Table) Has(k godwit.Key) bool { return k-t.first < t.rows }

// Width returns the floats of a value, or of a whole row.
func (t *Table) Width(whole bool) int {
	if whole {
		return t.Floats
	}
	return t.Dim
}

// Push makes a copy of one of the table's rows, of Floats floats, what a push makes of the row.
func (t *Table) Push(row, push []float32) { t.update.PushTo(row, push) }

// Read writes what a pull of a row gets to dst, of Dim floats.
func (t *Table) Read(dst, row []float32) { t.update.Read(dst, row) }

// Run returns how many of the first keys are the table's.
func (t *Table) Run(keys []godwit.Key) int {
	first, rows := t.first, t.rows
	for i, k := range keys {
		if k-first >= rows {
			return i
		}
	}
	return len(keys)
}

func tablesOf(c *protocol.Config) []Table {
	m := c.Model
	ts := make([]Table, m.Tables())
	for i := range ts {
		query, _ := m.Table(i).Rule.(godwit.Querier)
		ts[i] = Table{Index: i, first: m.Key(i, 0), rows: godwit.Key(m.Table(i).Rows), Dim: m.Table(i).Dim, Floats: m.TableRowLen(i), update: c.Update(i), query: query, Single: len(m.Table(i).Filters) == 0}
	}
	return ts
}

// First returns the first table: keys of a call are most likely of the table of the key
// before, so callers begin with any.
func (s *Set) First() *Table { return &s.tables[0] }

// Table returns the table of a key, nil if the model has no such key.
func (s *Set) Table(k godwit.Key) *Table {
	if !s.proto.Model.Has(k) {
		return nil
	}
	i, _ := s.proto.Model.Locate(k)
	return &s.tables[i]
}

// Of returns a table by its index in the model.
func (s *Set) Of(table int) *Table { return &s.tables[table] }
