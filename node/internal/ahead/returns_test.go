package ahead

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
)

// What keys do between two uses decides whether they come to the node for short steps.
func TestKeysThatDoNotStayAreFleeting(t *testing.T) {
	const all = 200_000
	rng := rand.New(rand.NewPCG(1, 1))
	for name, x := range map[string]struct {
		keys, of int     // of a step, of so many keys
		gone     float64 // share of those that came which are elsewhere at the next use
		fleeting bool
	}{
		"many keys, once, that do not stay": {2500, all, 0.6, true},
		"many keys, once, that stay":        {2500, all, 0.05, false},
		"the same keys in most steps":       {2500, 5000, 0.6, false},
		"few keys":                          {100, all, 0.6, false},
	} {
		var r returns
		for at := godwit.Clock(1); at < 2000; at++ {
			keys := make([]godwit.Key, x.keys)
			for i := range keys {
				keys[i] = godwit.Key(rng.IntN(x.of))
			}
			again := r.announced(keys, at+3, at, true, nil)
			away := make([]bool, len(again))
			for i := range away {
				away[i] = rng.Float64() < x.gone
			}
			r.judge(away)
		}
		if r.fleeting != x.fleeting {
			t.Errorf("%s: fleeting: %v", name, r.fleeting)
		}
		if got := r.long(int64(LongStep), 0); (got < int64(LongStep)) != x.fleeting {
			t.Errorf("%s: steps are long from %d ns on", name, got)
		}
		if r.long(Never, 0) != Never {
			t.Errorf("%s: steps that are never long become so", name)
		}
	}
}

// Steps that use the same keys again and again are long from later on, if reads of the keys may lag.
func TestStepsOfTheSameRelaxedKeysAreLongFromLaterOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, x := range map[string]struct {
		keys, of int
		relaxed  func(godwit.Key) bool
		steady   bool
	}{
		"the same in most steps":      {2500, 5000, func(godwit.Key) bool { return true }, true},
		"… few of them":               {400, 600, func(godwit.Key) bool { return true }, true},
		"… half of which may not lag": {2500, 5000, func(k godwit.Key) bool { return k%2 == 0 }, false},
		"… of which none may lag":     {2500, 5000, nil, false},
		"once in 16 steps":            {2500, 40_000, func(godwit.Key) bool { return true }, false},
	} {
		r := returns{relaxed: x.relaxed}
		for at := godwit.Clock(1); at < 200; at++ {
			keys := make([]godwit.Key, x.keys)
			for i, k := range rng.Perm(x.of)[:x.keys] {
				keys[i] = godwit.Key(k)
			}
			r.announced(keys, at, at-1, true, nil)
			r.judge(nil)
		}
		if got := r.long(int64(LongStep), 0); (got > int64(LongStep)) != x.steady {
			t.Errorf("%s: steps are long from %d ns on", name, got)
		}
		if near := x.of <= 5000; r.again != near {
			t.Errorf("%s: used again and again: %v", name, r.again)
		}
		if r.long(Never, 0) != Never {
			t.Errorf("%s: steps that are never long become so", name)
		}
	}
}

// Keys that are to stay where they are cannot be judged, and those that were not used yet either.
func TestOnlyKeysThatCameAndWereUsedAreJudged(t *testing.T) {
	key := godwit.Key(0) // of the sample
	if _, is := sampled(key); !is {
		t.Fatal("key 0 is not of the sample")
	}
	for name, x := range map[string]struct {
		at, clock godwit.Clock // of the second announcement
		wanted    bool         // at the first
		judged    bool
	}{
		"came and was used":      {at: 20, clock: 2, wanted: true, judged: true},
		"stayed where it is":     {at: 20, clock: 2},
		"was not used yet":       {at: 20, clock: 1, wanted: true},
		"in steps close by":      {at: 1 + nearSteps, clock: 5, wanted: true},
		"in the step after them": {at: 2 + nearSteps, clock: 5, wanted: true, judged: true},
	} {
		var r returns
		r.announced([]godwit.Key{key}, 1, 0, x.wanted, nil)
		if got := len(r.announced([]godwit.Key{key}, x.at, x.clock, true, nil)) == 1; got != x.judged {
			t.Errorf("%s: judged %v", name, got)
		}
	}
}

// Steps that use the same keys again and again are not long where the values of others are dear to fetch at several lengths in a row, until they compute for far
// longer. Without that, a step is long from a millisecond on.
func TestStepsAreLongFromLaterOnWhereValuesAreDear(t *testing.T) {
	type measured struct {
		took, computed time.Duration
		long           bool
	}
	const ms = time.Millisecond
	dear := []measured{{5 * ms, 4 * ms, true}, {6 * ms, 4 * ms, true}, {4 * ms, 3 * ms, false}} // of 3 ms
	for name, x := range map[string]struct {
		again, fleeting bool
		steps           []measured
	}{
		"the same keys, dear":               {true, false, slices.Concat(dear, []measured{{3 * ms, 3 * ms, false}, {11 * ms, 11 * ms, false}})},
		"… until steps are far longer":      {true, false, slices.Concat(dear, []measured{{12 * ms, 12 * ms, true}, {13 * ms, 12 * ms, true}, {7 * ms, 6 * ms, true}})},
		"… and dear again":                  {true, false, slices.Concat(dear, []measured{{12 * ms, 12 * ms, true}, {16 * ms, 12 * ms, true}, {16 * ms, 12 * ms, true}, {16 * ms, 12 * ms, false}, {40 * ms, 40 * ms, false}})},
		"the same keys, dear now and then":  {true, false, []measured{{5 * ms, 4 * ms, true}, {9 * ms, 4 * ms, true}, {4 * ms, 4 * ms, true}, {9 * ms, 4 * ms, true}, {9 * ms, 4 * ms, true}, {4 * ms, 4 * ms, true}}},
		"the same keys, not dear":           {true, false, []measured{{37 * ms / 10, 3 * ms, true}, {37 * ms / 10, 3 * ms, true}, {37 * ms / 10, 3 * ms, true}, {2 * ms, 2 * ms, true}}},
		"the same keys, dear for a while":   {true, false, slices.Concat([]measured{{9 * ms, 9 * ms, true}}, dear, []measured{{9 * ms, 9 * ms, false}})},
		"other keys, dear":                  {false, false, []measured{{9 * ms, 3 * ms, true}, {9 * ms, 3 * ms, true}, {9 * ms, 3 * ms, true}, {3 * ms, ms, true}}},
		"other keys that do not stay, dear": {false, true, []measured{{9 * ms, ms / 10, true}, {9 * ms, ms / 10, true}, {9 * ms, ms / 10, true}, {9 * ms, ms / 40, false}}},
		"short steps are dear at no length": {true, false, []measured{{ms, ms / 3, false}, {ms, ms / 3, false}, {ms, ms / 3, false}, {12 * ms / 10, 12 * ms / 10, true}}},
		"nor dear before they were short":   {true, false, []measured{{2 * ms, ms, true}, {2 * ms, ms, true}, {ms, ms / 3, false}, {2 * ms, 2 * ms, true}, {4 * ms, 3 * ms, true}, {4 * ms, 3 * ms, true}, {4 * ms, 3 * ms, false}}},
	} {
		v := verdict{long: true}
		for i, m := range x.steps {
			p := v.judge(int64(m.took), int64(m.computed), &returns{again: x.again, fleeting: x.fleeting}, int64(LongStep))
			if v.long != m.long || p.Fetches() != m.long || p.Took != int64(m.computed) {
				t.Errorf("%s, step %d: long: %v (pace %+v), want %v", name, i, v.long, p, m.long)
			}
		}
	}
}
