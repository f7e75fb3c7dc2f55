package godwit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sort"
	"unicode/utf8"
)

// A Table describes a namespace of rows: how many, how long, how they start
// and how a push changes them.
type Table struct {
	// Name identifies the table for people and in files: UTF-8. It is unique in a model.
	Name string
	// Rows is the number of rows, at least 1.
	Rows uint64
	// Dim is the number of float32 of a value, 1 … MaxDim.
	Dim int
	// Rule says how a push changes a row; nil adds ([Add]).
	Rule Rule
	// Init gives a row its first value; nil is zero ([Zero]).
	Init Init
	// Filters change what pushes send to other nodes, one after the other; nil
	// changes nothing.
	Filters []Filter
	// Counts says that rows hold whole numbers, up to 256 in a push, that must arrive
	// exactly and without delay. Filters that may lose more than [LossFractions] are
	// refused.
	Counts bool
	// Relaxed says that reads of the table may lag behind what other nodes push, also of rows
	// that nobody announced. Nodes may then have copies of rows that they access again and
	// again, of which they see each other's pushes with one of the next sync rounds, also where they
	// would fetch the values of other tables ahead of each step. Without
	// it, and without intents, a row has one copy under the adaptive policies, on which synchronous operations are atomic.
	Relaxed bool
	// Hot, where set, gives how often the task expects a row to be accessed
	// (any unit, the same for all tables). Only the policy "nonuniform" calls it,
	// for every row at the start. If no table sets it, or if there are more than 1<<24
	// rows in all, the policy measures accesses instead. The adaptive policy needs no
	// such hint.
	Hot func(row uint64) float64

	// Staleness bounds what a read may lack (SSP: Ho et al., "More Effective
	// Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS
	// 2013): with Within(s), a read at clock c waits until it contains all updates
	// of all workers from clocks before c - s, and contains the worker's own that it has
	// waited for. So no worker reads when it is more than s clocks ahead of another one.
	// [BulkSynchronous] is s = 0; [Eventual], the zero Bound, does not wait.
	// Clocks are counted from the last [Worker.Barrier], which counts as a clock of all
	// workers for the reads after it. Nobody waits for a worker that has called
	// [Worker.Finish].
	Staleness Bound
	// Window bounds the worker's own pushes and sets that are under way: with
	// Within(d), a call at clock c waits until those from clocks before c - d are
	// complete. Algorithms with a bounded delay need it. [Eventual], the zero Bound,
	// waits for none.
	Window Bound
}

// MayRound reports whether values and pushes of the table may be rounded where bytes are what
// bounds the network: the rule is [Roundable], rows hold no counts, reads of any
// staleness will do, and there are no filters, which say themselves what may be rounded.
func (t *Table) MayRound() bool {
	_, may := t.Rule.(Roundable)
	_, query := t.Rule.(Querier)
	_, joins := t.Rule.(NonAdditive)
	return may && !query && !joins && !t.Counts && len(t.Filters) == 0 && t.Staleness == Eventual
}

// MaxDim bounds the floats of one value, so that any row fits in a frame.
const MaxDim = 1 << 20

// maxRowLen bounds the floats of a value and its rule's state, so that a frame has room for two rows.
const maxRowLen = 8 * MaxDim

// maxKeys leaves room above the last key for arithmetic on keys.
const maxKeys = 1 << 48

// A Model is a list of tables whose rows have consecutive keys: table 0 has the
// keys 0 … Rows-1, table 1 the following ones, and so on. It does not change
// during a run and may be used by any number of goroutines.
type Model struct {
	tables []Table
	base   []Key // base[i] is the first key of tables[i]; base[len(tables)] the number of keys
	rowLen []int
	fresh  []int
}

// NewModel checks the tables and lays out their keys.
func NewModel(tables ...Table) (*Model, error) {
	if len(tables) == 0 {
		return nil, errors.New("godwit: a model needs at least one table")
	}
	m := &Model{tables: append([]Table(nil), tables...), base: make([]Key, 0, len(tables)+1)}
	seen := map[string]bool{}
	var next uint64
	for i := range m.tables {
		t := &m.tables[i]
		switch {
		case t.Name == "":
			return nil, fmt.Errorf("godwit: table %d has no name", i)
		case seen[t.Name]:
			return nil, fmt.Errorf("godwit: two tables are called %q", t.Name)
		case t.Rows == 0 || t.Rows > maxKeys-next:
			return nil, fmt.Errorf("godwit: table %q has %d rows, want 1 … %d in all tables together", t.Name, t.Rows, uint64(maxKeys))
		case t.Dim < 1 || t.Dim > MaxDim:
			return nil, fmt.Errorf("godwit: table %q has values of %d floats, want 1 … %d", t.Name, t.Dim, MaxDim)
		case !t.Staleness.valid() || !t.Window.valid():
			return nil, fmt.Errorf("godwit: table %q: a bound of clocks is out of range, want 0 … %d", t.Name, MaxBound)
		}
		if err := t.checkFilters(); err != nil {
			return nil, err
		}
		seen[t.Name] = true
		if t.Rule == nil {
			t.Rule = Add{}
		}
		if t.Init == nil {
			t.Init = Zero{}
		}
		if err := t.checkRule(); err != nil {
			return nil, fmt.Errorf("godwit: table %q: rule %s: %w", t.Name, t.Rule.Name(), err)
		}
		if err := t.checkNames(); err != nil {
			return nil, err
		}
		if c, ok := t.Init.(interface{ Check() error }); ok {
			if err := c.Check(); err != nil {
				return nil, fmt.Errorf("godwit: table %q: first values %s: %w", t.Name, t.Init.Name(), err)
			}
		}
		m.base = append(m.base, Key(next))
		m.rowLen = append(m.rowLen, t.Dim+t.Rule.StateLen(t.Dim))
		m.fresh = append(m.fresh, m.rowLen[i])
		if r, ok := t.Rule.(Merger); ok {
			if m.fresh[i] = r.Fresh(t.Dim); m.fresh[i] < t.Dim || m.fresh[i] > m.rowLen[i] {
				return nil, fmt.Errorf("godwit: table %q: rule %s wants %d floats of a row fresh, want %d … %d", t.Name, r.Name(), m.fresh[i], t.Dim, m.rowLen[i])
			}
		}
		next += t.Rows
	}
	m.base = append(m.base, Key(next))
	return m, nil
}

// checkRule returns what is wrong with the rule, or with its use for values of the table's length.
func (t *Table) checkRule() error {
	if c, ok := t.Rule.(Checker); ok {
		if err := c.Check(); err != nil {
			return err
		}
	}
	if c, ok := t.Rule.(DimChecker); ok {
		if err := c.CheckDim(t.Dim); err != nil {
			return err
		}
	}
	if n := t.Rule.StateLen(t.Dim); n < 0 || n > maxRowLen-t.Dim {
		return fmt.Errorf("it keeps %d floats of a row of %d, want 0 … %d", n, t.Dim, maxRowLen-t.Dim)
	}
	return nil
}

// checkNames returns an error for a name that files could not hold.
func (t *Table) checkNames() error {
	for _, x := range []struct{ what, name string }{{"name", t.Name}, {"rule's name", t.Rule.Name()}, {"initializer's name", t.Init.Name()}} {
		if x.name == "" {
			return fmt.Errorf("godwit: table %q: its %s is empty: it must say which one it is, with all parameters, as nodes compare it", t.Name, x.what)
		}
		if !utf8.ValidString(x.name) {
			return fmt.Errorf("godwit: table %q: its %s, %q, is not UTF-8", t.Name, x.what, x.name)
		}
	}
	return nil
}

// Bounded reports whether a table bounds the staleness of its reads.
func (m *Model) Bounded() bool {
	for i := range m.tables {
		if m.tables[i].Staleness != Eventual {
			return true
		}
	}
	return false
}

// Tables returns the number of tables.
func (m *Model) Tables() int { return len(m.tables) }

// Table returns the description of table i.
func (m *Model) Table(i int) *Table { return &m.tables[i] }

// Keys returns the number of keys of all tables: valid keys are 0 … Keys()-1.
func (m *Model) Keys() uint64 { return uint64(m.base[len(m.tables)]) }

// Key returns the key of a row of table i. It panics if there is no such table or row,
// as an index out of range does.
func (m *Model) Key(i int, row uint64) Key {
	if uint(i) >= uint(len(m.tables)) || row >= m.tables[i].Rows {
		m.noRow(i, row)
	}
	return m.base[i] + Key(row)
}

func (m *Model) noRow(i int, row uint64) {
	if uint(i) >= uint(len(m.tables)) {
		panic(fmt.Sprintf("godwit: there is no table %d, the model has %d", i, len(m.tables)))
	}
	panic(fmt.Sprintf("godwit: table %q has no row %d, it has rows 0 … %d", m.tables[i].Name, row, m.tables[i].Rows-1))
}

// Locate returns the table and the row of a key. The key must be valid.
func (m *Model) Locate(k Key) (table int, row uint64) {
	if len(m.tables) > 8 {
		table = sort.Search(len(m.tables), func(i int) bool { return m.base[i+1] > k })
	} else {
		for k >= m.base[table+1] {
			table++
		}
	}
	return table, uint64(k - m.base[table])
}

// Has reports whether k is a key of the model.
func (m *Model) Has(k Key) bool { return k < m.base[len(m.tables)] }

// Dim returns the floats of the value of a valid key.
func (m *Model) Dim(k Key) int { t, _ := m.Locate(k); return m.tables[t].Dim }

// RowLen returns the floats of the row of a valid key: value, then state.
func (m *Model) RowLen(k Key) int { t, _ := m.Locate(k); return m.rowLen[t] }

// Fresh returns how many floats of the row of a valid key, from its first, are equal
// in all copies once everything was exchanged: the floats after them may lag ([Merger]).
func (m *Model) Fresh(k Key) int { t, _ := m.Locate(k); return m.fresh[t] }

// TableRowLen returns the floats of a row of table i: value, then state.
func (m *Model) TableRowLen(i int) int { return m.rowLen[i] }

// Floats returns the summed value lengths of keys, the length of the buffer
// that a Pull of them fills. The error names the first key out of range.
func (m *Model) Floats(keys []Key) (int, error) {
	n := 0
	for i, k := range keys {
		if !m.Has(k) {
			return 0, fmt.Errorf("%w: key %d at position %d, the model has keys 0 … %d", ErrKeyRange, k, i, m.Keys()-1)
		}
		n += m.Dim(k)
	}
	return n, nil
}

// Fingerprint is equal for two models exactly when they agree in everything
// that nodes must agree on: tables, lengths, rules and what these are besides, initializers, filters,
// staleness, counts and relaxed tables. (Nodes with different filters could read each other's messages, but they
// would lose different things, which is a mistake.)
func (m *Model) Fingerprint() string {
	h := sha256.New()
	for i := range m.tables {
		t := &m.tables[i]
		fmt.Fprintf(h, "%q %d %d %q %q\n", t.Name, t.Rows, t.Dim, t.Rule.Name(), t.Init.Name())
		_, merges := t.Rule.(Merger)
		_, queries := t.Rule.(Querier)
		_, joins := t.Rule.(NonAdditive)
		_, rounds := t.Rule.(Roundable)
		fmt.Fprintln(h, m.rowLen[i], m.fresh[i], merges, queries, joins, rounds, t.Counts)
		if len(t.Filters) > 0 {
			fmt.Fprintf(h, "%q\n", filterNames(t.Filters))
		}
		if t.Staleness != Eventual {
			fmt.Fprintf(h, "staleness %v\n", t.Staleness)
		}
		if t.Relaxed {
			fmt.Fprintln(h, "relaxed")
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:12])
}
