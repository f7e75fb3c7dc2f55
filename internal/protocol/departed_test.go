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

// A worker has pushed to a replica that becomes the main copy. While the move lasts, a request of its node that is on the network keeps it from reading the
// row, and what another node said before lacks the push.
func TestARowThatMovesHereCountsAsOneThatLeft(t *testing.T) {
	c, home, away := heldElsewhere(t)
	since := away.Departures()
	away.Push(0, []float32{1})
	*away.remoteOf(0)++
	home.Unwant(home, 0)
	for away.holding(0) != tentative {
		if err := c.deliver(c.busy()[0]); err != nil {
			t.Fatal(err)
		}
	}
	if p := away.Pull(0, make([]float32, 1)); p != Elsewhere {
		t.Fatalf("the row is read at %d: the test is vacuous", p)
	}
	if !away.DepartedSince(0, since) {
		t.Error("what another node said before the row moved here is used")
	}
}
