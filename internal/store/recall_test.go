package store

import (
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

func TestRowsAreRecalledOfEqualKeysAtEqualPositions(t *testing.T) {
	keys, rows := make([]godwit.Key, mostNoted+1), make([]*Header, mostNoted+1)
	for i := range keys {
		keys[i], rows[i] = godwit.Key(3*i), new(Header)
	}
	rows[50] = nil
	var r Recall
	recalled := func(what string, first int, ks []godwit.Key, want bool) {
		t.Helper()
		got := r.Rows(first, ks)
		if want != (got != nil) || want && !slices.Equal(got, rows[first:first+len(ks)]) {
			t.Errorf("%s: %d rows are recalled, of %d keys", what, len(got), len(ks))
		}
	}
	r.Note(0, keys[:20], rows[:20])
	r.Note(20, keys[20:40], rows[20:40])
	r.Note(45, keys[45:48], rows[45:48])
	recalled("all", 0, keys[:40], true)
	recalled("some", 13, keys[13:27], true)
	recalled("other positions", 13, keys[12:26], false)
	recalled("more", 30, keys[30:41], false)
	recalled("after a gap", 45, keys[45:48], false)
	r.Note(40, keys[40:60], rows[40:60])
	recalled("before one without a row", 40, keys[40:50], true)
	recalled("one without a row", 40, keys[40:51], false)
	r.Note(60, keys[60:], rows[60:])
	recalled("too many", 60, keys[60:70], false)
	r.Note(0, keys[1:9], rows[1:9])
	recalled("of the call before", 0, keys[:8], false)
	recalled("of the call before, behind this one", 13, keys[13:27], false)
}
