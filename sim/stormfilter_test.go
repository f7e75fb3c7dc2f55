package sim

import (
	"context"
	"runtime"
	"testing"
)

// Filters hold back and round in storms, and all that was pushed arrives.
func TestStormsDrawFiltersThatHoldBackAndRound(t *testing.T) {
	if racing {
		t.Skip("storms have one goroutine each")
	}
	for _, bounded := range []bool{false, true} {
		r := Storms(context.Background(), 1, 300, StormConfig{Bounded: bounded}, runtime.GOMAXPROCS(0))
		if r.Failed != nil {
			t.Fatal(r.Failed)
		}
		s := &r.sum
		t.Logf("%d pushes of a key held back, %d vectors of fractions rounded, %d keys flushed, %d of %d bytes of values", s.HeldBack, r.rounded, s.Leftovers, s.FilterOut, s.FilterIn)
		if s.HeldBack < 1000 || r.rounded < 1000 || s.Leftovers < 500 || s.FilterOut >= s.FilterIn {
			t.Error("the test is vacuous")
		}
	}
}
