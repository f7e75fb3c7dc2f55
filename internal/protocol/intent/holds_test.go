package intent

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
)

// The table agrees with a map, however keys come and go.
func TestKeysAreHeldByWhomTheyWereHeldLast(t *testing.T) {
	eachSeed(t, 50, holding)
}

func holding(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 5))
	var h holds
	want := map[godwit.Key]*group{}
	groups := [3]*group{{}, {}, {}}
	universe := uint64(1) << (1 + rng.IntN(11))
	for range 5000 {
		k := godwit.Key(rng.Uint64N(universe)) << rng.IntN(3) * 0x1000
		g := groups[rng.IntN(len(groups))]
		switch x, held := h.of(k), want[k]; {
		case x.by != held:
			return fmt.Errorf("key %d is held by %p, want %p", k, x.by, held)
		case held == nil:
			h.put(x, k, g)
			want[k] = g
		case rng.IntN(2) == 0:
			x.by = g
			want[k] = g
		default:
			h.end(k)
			delete(want, k)
		}
		if h.n != len(want) {
			return fmt.Errorf("%d keys are held, want %d", h.n, len(want))
		}
	}
	for k, g := range want {
		if h.by(k) != g {
			return fmt.Errorf("at the end key %d is held by %p, want %p", k, h.by(k), g)
		}
		h.end(k)
	}
	if h.n != 0 {
		return fmt.Errorf("%d keys are left", h.n)
	}
	return nil
}

// Memory for very many keys is given back when none is held.
func TestATableOfManyKeysIsGivenBack(t *testing.T) {
	var h holds
	g := &group{}
	for k := range godwit.Key(maxIdleSlots) {
		h.put(h.of(k), k, g)
	}
	for k := range godwit.Key(maxIdleSlots) {
		h.end(k)
	}
	if h.slots != nil {
		t.Errorf("%d slots are kept for no key", len(h.slots))
	}
}
