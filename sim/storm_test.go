package sim

import (
	"context"
	"flag"
	"testing"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run the storm of this seed only")
	seedsFlag = flag.Int("seeds", 1000, "storms")
)

func TestStormsKeepAllPromises(t *testing.T) {
	first, n := uint64(1), *seedsFlag
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	began := time.Now()
	var messages, moves, copies, drops uint64
	for seed := first; seed < first+uint64(n); seed++ {
		r, err := Storm(context.Background(), seed, Weather{})
		if err != nil {
			t.Fatalf("-seed %d (%s): %v", seed, r.Weather, err)
		}
		s := r.Sum()
		messages += r.Messages
		moves, copies, drops = moves+s.Moves, copies+s.Copies, drops+s.Drops
	}
	t.Logf("%d storms in %v: %d messages, %d moves, %d copies, %d drops", n, time.Since(began), messages, moves, copies, drops)
}
