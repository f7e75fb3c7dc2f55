package sim

import (
	"math/rand/v2"
	"testing"
)

func TestEventsHappenInTheOrderOfTimeAndThenOfPlanning(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var q queue
	var last event
	for i := range 10_000 {
		if len(q.events) == 0 || i < 5000 && rng.IntN(3) > 0 {
			q.push(event{at: last.at + rng.Int64N(50)})
			continue
		}
		e := q.pop()
		if e.before(&last) {
			t.Fatalf("at %d, planned as %d, comes after %d, planned as %d", e.at, e.seq, last.at, last.seq)
		}
		last = e
	}
}
