package store

import (
	"slices"

	"github.com/godwit-ps/godwit"
)

// A Recall notes where the rows of a call's keys seemed to be, for a call that has the same keys at the same
// positions. What it knows may have changed since, as it may between a look and an access: a row's header says whether it is still the key's to who
// has the lock, and memory of rows that are gone can be read. One goroutine uses it at a time.
type Recall struct {
	keys []godwit.Key
	rows []*Header
}

// mostNoted is how many keys a Recall has at the most.
const mostNoted = 1 << 15

// Note notes the rows of keys from a position of the call on. The first ones begin anew; those after keys that were left out are not noted.
func (r *Recall) Note(first int, keys []godwit.Key, rows []*Header) {
	if first == 0 {
		r.keys, r.rows = r.keys[:0], r.rows[:0]
	}
	if first == len(r.rows) && first+len(keys) <= mostNoted {
		r.keys, r.rows = append(r.keys, keys...), append(r.rows, rows...)
	}
}

// Rows returns where the rows of keys from a position on were; nil: that is not known of all of them, or they had no rows.
func (r *Recall) Rows(first int, keys []godwit.Key) []*Header {
	end := first + len(keys)
	if end > len(r.rows) || !slices.Equal(keys, r.keys[first:end]) {
		return nil
	}
	rows := r.rows[first:end]
	if slices.Contains(rows, nil) {
		return nil
	}
	return rows
}
