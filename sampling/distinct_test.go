package sampling

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

// orders returns all sequences of n of the rows 0 … rows-1, and the
// probability of each if rows are drawn without replacement with weights p.
func orders(p []float64, n int) (index map[string]int, probs []float64) {
	index = map[string]int{}
	var extend func(prefix []int, prob, left float64)
	extend = func(prefix []int, prob, left float64) {
		if len(prefix) == n {
			index[fmt.Sprint(prefix)] = len(probs)
			probs = append(probs, prob)
			return
		}
		for row, q := range p {
			if q > 0 && !slices.Contains(prefix, row) {
				extend(append(slices.Clone(prefix), row), prob*q/left, left-q)
			}
		}
	}
	extend(nil, 1, 1)
	return index, probs
}

func countOrders(t *testing.T, s *Sampler, w *fakeWorker, n, samples int, index map[string]int) []int {
	t.Helper()
	counts := make([]int, len(index))
	for range samples {
		var rows []int
		for _, k := range draw(t, s, w, n) {
			rows = append(rows, int(k-testBase))
		}
		i, ok := index[fmt.Sprint(rows)]
		if !ok {
			t.Fatalf("sample %v is impossible", rows)
		}
		counts[i]++
	}
	return counts
}

// Every sequence of distinct rows, in its order, must be as frequent as with
// draws one after the other: distinctness, marginals and order in one test.
func TestSamplesWithoutReplacementComeInTheOrderOfTheDraws(t *testing.T) {
	dists := []Distribution{Uniform(5), LogUniform(5), mustPower(t, []float64{40, 0, 3, 1, 9}, 0.75)}
	for _, d := range dists {
		for _, scheme := range exact() {
			for _, n := range []int{2, int(d.Support())} {
				for _, settle := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/n=%d/settle=%v", d.Name(), scheme.Name(), n, settle), func(t *testing.T) {
						s := newSampler(t, d, scheme, true, 6)
						if settle {
							s.maxRejected = 0
						}
						index, probs := orders(probsOf(d), n)
						checkCounts(t, countOrders(t, s, &fakeWorker{dim: testDim}, n, 20_000, index), probs)
					})
				}
			}
		}
	}
}

func TestLocalWithoutReplacementPrefersLocalKeysOneByOne(t *testing.T) {
	// Rows 2 and 5 of six are local. With endless tries a sample of three is
	// these two in either order, then one of the others.
	d := Uniform(6)
	s := newSampler(t, d, Local{}, true, 7)
	w := &fakeWorker{dim: testDim, local: func(k godwit.Key) bool { return k == testBase+2 || k == testBase+5 }}
	index, probs := orders(probsOf(d), 3)
	for order, i := range index {
		var a, b, c int
		fmt.Sscanf(order, "[%d %d %d]", &a, &b, &c)
		if a+b == 7 && min(a, b) == 2 {
			probs[i] = 1.0 / 8
		} else {
			probs[i] = 0 // (2/3)^64 = 5e-12, (4/5)^64 = 6e-7
		}
	}
	checkCounts(t, countOrders(t, s, w, 3, 8000, index), probs)
	if w.found != 16_000 || len(w.pulled) != 8000 {
		t.Errorf("%d local and %d remote keys, want 16000 and 8000", w.found, len(w.pulled))
	}
}

func TestASampleOfTheWholeSupportTerminates(t *testing.T) {
	freq := make([]float64, 3000)
	for i := range freq {
		freq[i] = math.Pow(float64(i+1), -4) // the last is drawn once in 1e14
	}
	for _, d := range []Distribution{Uniform(3000), LogUniform(3000), mustPower(t, freq, 1)} {
		for _, scheme := range schemes() {
			for what, local := range map[string]func(godwit.Key) bool{
				"everything": nil,
				"nothing":    func(godwit.Key) bool { return false },
				"a third":    thirdIsLocal,
			} {
				s := newSampler(t, d, scheme, true, 8)
				keys := draw(t, s, &fakeWorker{dim: testDim, local: local}, 3000)
				slices.Sort(keys)
				if n := len(slices.Compact(keys)); n != 3000 {
					t.Errorf("%s, %s, %s is local: %d distinct keys of 3000", d.Name(), scheme.Name(), what, n)
				}
				// The bound on rejections, and for each key its tries.
				if got, most := s.Stats().Draws, rejections(3000)+3000*defaultTries; got > most {
					t.Errorf("%s, %s, %s is local: %d draws, want at most %d", d.Name(), scheme.Name(), what, got, most)
				}
				if _, err := s.Prepare(&fakeWorker{}, 3001, 0, 1); err == nil {
					t.Errorf("%s: 3001 distinct keys of 3000 were prepared", d.Name())
				}
			}
		}
	}
}

func TestTheSupportCountsNotTheRows(t *testing.T) {
	s := newSampler(t, mustPower(t, wordFreq, 0.75), Local{}, true, 1)
	if _, err := s.Prepare(&fakeWorker{}, 15, 0, 1); err == nil {
		t.Error("15 distinct keys were prepared of 14 that occur")
	}
	if got := len(draw(t, s, &fakeWorker{dim: testDim}, 14)); got != 14 {
		t.Errorf("%d keys, want 14", got)
	}
}

// Rows that do not occur let nobody draw longer: one pass over them costs less than as many draws.
func TestASampleOfFewKeysAmongManyRowsIsDrawnSoon(t *testing.T) {
	freq := make([]float64, 1<<16)
	for i := range 10 {
		freq[i*1000] = math.Pow(1000, -float64(i))
	}
	s := newSampler(t, mustPower(t, freq, 1), Independent{}, true, 1)
	keys := draw(t, s, &fakeWorker{dim: testDim}, 10)
	slices.Sort(keys)
	if n := len(slices.Compact(keys)); n != 10 {
		t.Errorf("%d distinct keys of 10", n)
	}
	if n := s.Stats().Draws; n > 1<<14 {
		t.Errorf("%d draws for 10 keys", n)
	}
}

func TestAKeySetHoldsWhatWasAdded(t *testing.T) {
	var set keySet
	for _, n := range []int{1, 2, 3, 4, 5, 100, 1000, 7} {
		set.reset(n)
		for i := range n {
			k := godwit.Key(i) << 40 // equal low bits
			if set.has(k) {
				t.Fatalf("key %d of %d is there before it was added", i, n)
			}
			set.add(k)
			if !set.has(k) || set.len != i+1 {
				t.Fatalf("key %d of %d is missing, or the length %d is wrong", i, n, set.len)
			}
		}
	}
}
