package protocol

import (
	"testing"

	"github.com/godwit-ps/godwit"
)

// Of the rows that left last it is known whose they were, and of more that any may have been among them.
func TestItIsKnownWhoseRowsLeftLast(t *testing.T) {
	var s Shard
	const rows = 3 * knownDepartures
	for n := range rows {
		if got := s.Departures(); got != uint64(n) {
			t.Fatalf("%d rows have left, want %d", got, n)
		}
		s.departures.note(godwit.Key(n))
	}
	for since := range rows + 1 {
		for k := range rows + 1 {
			want := k >= since && k < rows || rows-since > knownDepartures
			if got := s.DepartedSince(godwit.Key(k), uint64(since)); got != want {
				t.Fatalf("key %d may have left after %d rows had: %v, want %v", k, since, got, want)
			}
		}
	}
}
