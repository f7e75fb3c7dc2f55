package ahead

import (
	"math/rand/v2"
	"testing"

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
		if got := r.long(int64(LongStep)); (got < int64(LongStep)) != x.fleeting {
			t.Errorf("%s: steps are long from %d ns on", name, got)
		}
		if r.long(Never) != Never {
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
		if got := r.long(int64(LongStep)); (got > int64(LongStep)) != x.steady {
			t.Errorf("%s: steps are long from %d ns on", name, got)
		}
		if r.long(Never) != Never {
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
