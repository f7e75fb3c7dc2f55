package cut

import (
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/node/internal/shards"
)

// Rows are the main copies of a node.
type Rows struct {
	Set   *shards.Set
	Proto *protocol.Config
}

// A Sink takes rows of a table: their numbers within it, and for each its value followed by the
// rule's state. What it gets is good during the call.
type Sink func(table int, rows []uint64, floats []float32) error

// someKeys is how many keys of a table are looked at together.
const someKeys = 4096

// Each hands all main copies to sink, those that have their home here in the order of
// their keys, and so the others. It ends with the first error of sink, or of over, which it asks
// now and then.
func (r *Rows) Each(over func() error, sink Sink) error {
	keys := make([]godwit.Key, 0, someKeys)
	strays := r.strays()
	m := r.Proto.Model
	for t := range m.Tables() {
		first := m.Key(t, 0)
		end := first + godwit.Key(m.Table(t).Rows)
		for first < end {
			keys = keys[:0]
			first = r.Proto.Used(first, end, func(k godwit.Key) { keys = append(keys, k) })
			if err := r.some(over, t, keys, sink); err != nil {
				return err
			}
		}
		n, _ := slices.BinarySearch(strays, end)
		for keys := range slices.Chunk(strays[:n], someKeys) {
			if err := r.some(over, t, keys, sink); err != nil {
				return err
			}
		}
		strays = strays[n:]
	}
	return nil
}

// some hands over those of some keys of a table that are here.
func (r *Rows) some(over func() error, table int, keys []godwit.Key, sink Sink) error {
	if err := over(); err != nil {
		return err
	}
	first := r.Proto.Model.Key(table, 0)
	var rows []uint64
	var floats []float32
	for _, k := range keys {
		r.Set.With(k, func(s *protocol.Shard) {
			var here bool
			if floats, here = s.Main(k, floats); here {
				rows = append(rows, uint64(k-first))
			}
		})
	}
	if len(rows) == 0 {
		return nil
	}
	return sink(table, rows, floats)
}

// strays returns the keys of main copies that have their homes at other nodes, in their order.
func (r *Rows) strays() (keys []godwit.Key) {
	r.Set.WithEach(func(s *protocol.Shard) {
		s.EachMain(func(k godwit.Key) {
			if r.Proto.Homes.Home(k) != r.Proto.Self {
				keys = append(keys, k)
			}
		})
	})
	slices.Sort(keys)
	return keys
}

// Restore overwrites the row of a key, value and state. It reports false if the main copy is not
// here, or the rows are gone.
func (r *Rows) Restore(k godwit.Key, row []float32) (ok bool) {
	return r.Set.With(k, func(s *protocol.Shard) { ok = s.Restore(k, row) }) && ok
}
