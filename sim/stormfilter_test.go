package sim

import (
	"context"
	"runtime"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// Filters hold back and round in storms, and all that was pushed arrives.
func TestStormsDrawFiltersThatHoldBackAndRound(t *testing.T) {
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

// Where bytes seem to bound the network, what may be rounded is, and all promises are kept.
func TestStormsRoundWhereBytesBoundTheNetwork(t *testing.T) {
	w := StormConfig{Policy: placement.Adaptive, Filters: []godwit.Filter{}} // none of the tables' own
	r := Storms(context.Background(), 1, 200, w, runtime.GOMAXPROCS(0))
	if r.Failed != nil {
		t.Fatal(r.Failed)
	}
	s := &r.sum
	t.Logf("%d of %d bytes of values", s.FilterOut, s.FilterIn)
	if s.FilterIn < 10_000 || s.FilterOut >= s.FilterIn {
		t.Error("the test is vacuous")
	}
	if r = Storms(context.Background(), 1, 400, StormConfig{Policy: placement.Adaptive}, runtime.GOMAXPROCS(0)); r.Failed != nil {
		t.Fatal(r.Failed)
	}
}
