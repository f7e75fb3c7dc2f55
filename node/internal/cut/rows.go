package cut

import (
	"slices"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/node/internal/shards"
)

// Rows are the rows of a node, to be saved and restored.
type Rows struct {
	Host  *host.Host
	Set   *shards.Set
	Proto *protocol.Config
	// Hurry reports whether somebody waits for what is handed over, or nobody would use the processors meanwhile.
	Hurry func() bool

	rows   []uint64 // of slices; their memory is reused
	floats []float32
}

// A Sink takes rows of a table: their numbers within it, and for each its value followed by the
// rule's state. What it gets is good during the call.
type Sink func(table int, rows []uint64, floats []float32)

// Rows are handed over in slices of so many keys of a table at the most, and about so many floats: some
// 0.2 ms of processor time. Then whoever waits for a processor gets it, for twice as long as that took.
const (
	someKeys   = 2048
	someFloats = 1 << 16
	restShare  = 2
)

// save hands all rows to sink that are to be saved here: first and between others those of which
// copies were kept, then those that have their home here in the order of their keys, then the
// others.
func (r *Rows) save(sink Sink) {
	keys := make([]godwit.Key, 0, someKeys)
	m := r.Proto.Model
	for t := range m.Tables() {
		first := m.Key(t, 0)
		end := first + godwit.Key(m.Table(t).Rows)
		for first < end {
			r.saveKept(sink)
			keys = keys[:0]
			first = r.Proto.Used(first, end, func(k godwit.Key) { keys = append(keys, k) })
			r.slices(t, keys, sink)
		}
	}
	r.saveRest(sink)
}

// saveRest is save of what has its home elsewhere, or came since.
func (r *Rows) saveRest(sink Sink) {
	var keys []godwit.Key
	r.Set.WithEach(func(s *protocol.Shard) { s.Unsaved(func(k godwit.Key) { keys = append(keys, k) }) })
	r.all(keys, sink)
	r.saveKept(sink)
}

// saveKept is save of rows of which copies were kept.
func (r *Rows) saveKept(sink Sink) {
	var keys []godwit.Key
	r.Set.WithEach(func(s *protocol.Shard) { keys = s.Kept(keys) })
	r.all(keys, sink)
}

// all hands over those of any keys that are to be saved here.
func (r *Rows) all(keys []godwit.Key, sink Sink) {
	slices.Sort(keys)
	m := r.Proto.Model
	for len(keys) > 0 {
		t, _ := m.Locate(keys[0])
		n, _ := slices.BinarySearch(keys, m.Key(t, 0)+godwit.Key(m.Table(t).Rows))
		n = min(n, someKeys)
		r.slices(t, keys[:n], sink)
		keys = keys[n:]
	}
}

// slices hands over those of some keys of a table that are to be saved here, and lets others have the
// processor in between.
func (r *Rows) slices(table int, keys []godwit.Key, sink Sink) {
	for some := range slices.Chunk(keys, max(someFloats/r.Proto.Model.TableRowLen(table), 1)) {
		cost := r.Host.Measure(func() { r.some(table, some, sink) })
		if cost > 0 && !r.Hurry() {
			r.Host.Sleep(time.Duration(restShare*cost), nil, r.Host.Stop())
		}
	}
}

// some hands over those of some keys of a table that are to be saved here.
func (r *Rows) some(table int, keys []godwit.Key, sink Sink) {
	first := r.Proto.Model.Key(table, 0)
	rows, floats := r.rows[:0], r.floats[:0]
	for _, k := range keys {
		r.Set.With(k, func(s *protocol.Shard) {
			var here bool
			if floats, here = s.Save(k, floats); here {
				rows = append(rows, uint64(k-first))
			}
		})
	}
	r.rows, r.floats = rows, floats
	if len(rows) > 0 {
		sink(table, rows, floats)
	}
}

// Restore overwrites floats of a key's row (its value, then the state), from the float at on. It reports false if the main copy is not
// here, or the rows are gone. Saved says that the row counts as saved.
func (r *Rows) Restore(k godwit.Key, at int, part []float32, saved bool) (ok bool) {
	return r.Set.With(k, func(s *protocol.Shard) { ok = s.Restore(k, at, part, saved) }) && ok
}

// Row appends the row of a key, value and state, to dst. It reports false if the main copy is not
// here, or the rows are gone.
func (r *Rows) Row(k godwit.Key, dst []float32) (row []float32, ok bool) {
	row = dst
	ok = r.Set.With(k, func(s *protocol.Shard) { row, ok = s.Row(k, dst) }) && ok
	return row, ok
}
