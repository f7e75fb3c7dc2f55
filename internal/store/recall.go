package store

import (
	"slices"

	"github.com/godwit-ps/godwit"
)

// A Recall notes where the rows of keys seemed to be that were pulled, for pushes of the same keys in the same order, whether in one call or
// in several, and for pulls that follow these. What it knows may have changed since, as it may between a look and an access: a row's header says
// whether it is still the key's to who has the lock, and memory of rows that are gone can be read. One goroutine uses it at a time.
type Recall struct {
	keys []godwit.Key
	rows []*Header

	last   int  // where the last pull began
	pull   int  // where the next keys of pulls are, or will be noted
	push   int  // where the next keys of pushes are expected
	turned bool // a push came after the last pull
}

// mostNoted is how many keys a Recall has at the most.
const mostNoted = 1 << 15

// Rows returns where the rows were of keys that are pulled, or pushed, from a position of a call on; nil: that is not known of all of
// them, or, of keys that are pulled, they did not all have rows. After nil for a pull, Note may say it.
func (r *Recall) Rows(first int, keys []godwit.Key, push bool) []*Header {
	at := &r.pull
	switch {
	case push:
		at, r.turned = &r.push, true
		if first == 0 && !r.has(r.push, keys) {
			r.push = r.last
		}
	case first == 0:
		if r.turned || r.pull+len(keys) > mostNoted {
			r.turned, r.pull, r.push = false, 0, 0
		}
		r.last = r.pull
	}
	if !r.has(*at, keys) {
		return nil
	}
	rows := r.rows[*at : *at+len(keys)]
	if !push && slices.Contains(rows, nil) {
		return nil
	}
	*at += len(keys)
	return rows
}

// has reports whether it has noted keys at a place.
func (r *Recall) has(at int, keys []godwit.Key) bool {
	end := at + len(keys)
	return end <= len(r.keys) && slices.Equal(keys, r.keys[at:end])
}

// Note notes the rows of keys that are pulled, of which Rows had none. What was noted for later keys is forgotten.
func (r *Recall) Note(keys []godwit.Key, rows []*Header) {
	if r.pull+len(keys) <= mostNoted {
		r.keys, r.rows = append(r.keys[:r.pull], keys...), append(r.rows[:r.pull], rows...)
		r.pull += len(keys)
	}
}
