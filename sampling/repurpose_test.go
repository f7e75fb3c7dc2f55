package sampling

import (
	"fmt"
	"testing"

	"github.com/godwit-ps/godwit"
)

// accessed tells a sampler of rows.
func accessed(s *Sampler, rows ...uint64) {
	for _, r := range rows {
		s.Accessed([]godwit.Key{testBase + godwit.Key(r)})
	}
}

// among is the target conditioned on some rows.
func among(d Distribution, ok func(row uint64) bool) []float64 {
	sum := 0.0
	p := probsOf(d)
	for r := range p {
		if !ok(uint64(r)) {
			p[r] = 0
		}
		sum += p[r]
	}
	for r := range p {
		p[r] /= sum
	}
	return p
}

func TestRepurposedSamplesAreTheTargetAmongTheKeysAccessedLately(t *testing.T) {
	rows := []uint64{1, 2, 5, 6, 9, 11}
	for _, d := range dists(t) {
		s := newSampler(t, d, Repurpose{}, false, 1)
		accessed(s, rows...)
		accessed(s, 5, 5, 5, 5) // how often does not matter
		s.Accessed([]godwit.Key{0, testBase - 1, testBase + 16, 1 << 40})
		in := func(r uint64) bool {
			for _, x := range rows {
				if x == r {
					return true
				}
			}
			return false
		}
		checkCounts(t, count(t, s, &fakeWorker{dim: testDim}, 50_000), among(d, in))
		if st := s.Stats(); st.Repurposed != st.Pulled || st.Draws != 0 {
			t.Errorf("%s: %d of %d samples were repurposed, and %d drawn", d.Name(), st.Repurposed, st.Pulled, st.Draws)
		}
	}
}

func TestRepurposeForgetsWhatIsNotHereAnyMore(t *testing.T) {
	d := LogUniform(16)
	s := newSampler(t, d, Repurpose{}, false, 2)
	accessed(s, 0, 1, 2, 3, 4, 5)
	here := func(k godwit.Key) bool { return k%2 == 0 }
	w := &fakeWorker{dim: testDim, local: here}
	checkCounts(t, count(t, s, w, 50_000), among(d, func(r uint64) bool { return r < 6 && r%2 == 0 }))
	if st := s.Stats(); st.Draws != 0 || w.pulls != 0 {
		t.Errorf("%d draws and %d remote pulls, want none", st.Draws, w.pulls)
	}
}

func TestRepurposeFallsBackToLocalSamples(t *testing.T) {
	d := LogUniform(16)
	s := newSampler(t, d, Repurpose{}, false, 3)
	w := &fakeWorker{dim: testDim, local: thirdIsLocal}
	probs, _ := localProbs(d, thirdIsLocal, defaultTries)
	checkCounts(t, count(t, s, w, 20_000), probs)
	accessed(s, 0) // not local
	checkCounts(t, count(t, s, w, 20_000), probs)
	if n := s.Stats().Repurposed; n != 0 {
		t.Errorf("%d samples were repurposed, there was nothing to", n)
	}
}

func TestRepurposeWithoutReplacementTakesTheRecentKeysFirst(t *testing.T) {
	// Two rows were accessed: they come first, in the order of draws from
	// them, then one of the others.
	for _, d := range []Distribution{Uniform(6), mustPower(t, []float64{2, 1, 5, 1, 3, 4}, 1)} {
		index, probs := orders(probsOf(d), 3)
		p2, p5 := d.Prob(2)/(d.Prob(2)+d.Prob(5)), d.Prob(5)/(d.Prob(2)+d.Prob(5))
		for order, i := range index {
			var a, b, c int
			fmt.Sscanf(order, "[%d %d %d]", &a, &b, &c)
			last := d.Prob(uint64(c)) / (1 - d.Prob(2) - d.Prob(5))
			switch {
			case a == 2 && b == 5:
				probs[i] = p2 * last
			case a == 5 && b == 2:
				probs[i] = p5 * last
			default:
				probs[i] = 0
			}
		}
		s := newSampler(t, d, Repurpose{}, true, 4)
		accessed(s, 2, 5)
		checkCounts(t, countOrders(t, s, &fakeWorker{dim: testDim}, 3, 8000, index), probs)
	}
}

func TestTheRecentKeysAreAsManyAsAsked(t *testing.T) {
	d := Uniform(100_000)
	for keys, want := range map[int]int{0: 1024, 1: 1, 2: 2, 3: 4, 1000: 1024} {
		s := newSampler(t, d, Repurpose{Keys: keys}, false, 1)
		for r := range d.Rows() {
			accessed(s, r)
		}
		held := map[godwit.Key]bool{}
		for i, k := range s.recent.keys {
			if s.recent.sums[len(s.recent.keys)+i] > 0 {
				held[k] = true
			}
		}
		if len(held) != want || len(s.recent.keys) != want {
			t.Errorf("%d keys asked for, %d of %d slots are in use, want %d", keys, len(held), len(s.recent.keys), want)
		}
	}
}

func TestOnlyRepurposeWatches(t *testing.T) {
	for _, scheme := range Schemes() {
		if got := newSampler(t, Uniform(10), scheme, false, 1).Watches(); got != (scheme == Scheme(Repurpose{})) {
			t.Errorf("%s watches: %v", scheme.Name(), got)
		}
	}
}

// A key that is found not to be here is not looked for again, even if it comes back, until the worker accesses it again.
func TestRepurposeForgetsAKeyUntilItIsAccessedAgain(t *testing.T) {
	s := newSampler(t, Uniform(16), Repurpose{}, false, 6)
	here := true
	w := &fakeWorker{dim: testDim, local: func(godwit.Key) bool { return here }}
	repurposed := func() uint64 {
		before := s.Stats().Repurposed
		draw(t, s, w, 3)
		return s.Stats().Repurposed - before
	}
	accessed(s, 4)
	if n := repurposed(); n != 3 {
		t.Errorf("%d of 3 samples are the key that was accessed", n)
	}
	here = false
	repurposed()
	here = true
	if n := repurposed(); n != 0 {
		t.Errorf("%d samples are a key that was found to be elsewhere", n)
	}
	accessed(s, 4)
	if n := repurposed(); n != 3 {
		t.Errorf("%d of 3 samples are the key that was accessed again", n)
	}
}
