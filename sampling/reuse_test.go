package sampling

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

func TestReuseHandsEveryDrawOutEquallyOften(t *testing.T) {
	for _, d := range dists(t) {
		const pool, uses, pools = 50, 16, 400
		s := newSampler(t, d, Reuse{Pool: pool, Uses: uses}, false, 1)
		w := &fakeWorker{dim: testDim, local: thirdIsLocal}
		counts := make([]int, s.rows)
		for range pools {
			for range pool * uses / 10 {
				for _, k := range draw(t, s, w, 10) {
					counts[k-testBase]++
				}
			}
		}
		for row := range counts {
			if counts[row]%uses != 0 {
				t.Fatalf("%s: row %d came %d times, not a multiple of %d", d.Name(), row, counts[row], uses)
			}
			counts[row] /= uses
		}
		checkCounts(t, counts, probsOf(d))
		if st := s.Stats(); st.Draws != pool*pools || st.Pulled != pool*pools*uses {
			t.Errorf("%s: %d draws for %d samples, want %d for %d", d.Name(), st.Draws, st.Pulled, pool*pools, pool*pools*uses)
		}
	}
}

// tuples runs many samplers of different seeds and counts, of each, the rows at
// the given positions of its stream, as one cell.
func tuples(t *testing.T, d Distribution, scheme Scheme, at ...int) (counts []int, probs []float64) {
	t.Helper()
	rows := int(d.Rows())
	cells := int(math.Pow(float64(rows), float64(len(at))))
	counts, probs = make([]int, cells), make([]float64, cells)
	for c := range cells {
		probs[c] = 1
		for x, left := c, len(at); left > 0; x, left = x/rows, left-1 {
			probs[c] *= d.Prob(uint64(x % rows))
		}
	}
	w := &fakeWorker{dim: testDim}
	for seed := range uint64(20_000) {
		s := newSampler(t, d, scheme, false, seed)
		keys := draw(t, s, w, slices.Max(at)+1)
		c := 0
		for _, i := range at {
			c = c*rows + int(keys[i]-testBase)
		}
		counts[c]++
	}
	return counts, probs
}

func TestReuseDependsWithinItsBoundOnly(t *testing.T) {
	// Positions 0 … 3 are the first round of the first pool, 4 … 7 its second;
	// with 8 the second pool begins.
	const pool, uses = 4, 2
	d := mustPower(t, []float64{4, 1, 2}, 1)
	scheme := Reuse{Pool: pool, Uses: uses}
	for _, at := range [][]int{{0}, {3}, {5}, {7}, {8}, {15}, // every sample follows the target
		{0, 1, 2, 3}, {4, 5, 6, 7}, // a round is independent draws
		{0, 8}, {3, 11}, {7, 15}, {5, 13}, // Pool·Uses apart
		{7, 8}, {5, 9}} { // of different pools
		counts, probs := tuples(t, d, scheme, at...)
		if dev := chi2(counts, probs); dev > maxDeviate {
			t.Errorf("positions %v are %.1f standard deviations from independent draws", at, dev)
		}
	}
	// Nearer ones of one pool are the same draw with probability 1/Pool.
	for _, at := range [][]int{{0, 4}, {1, 6}, {3, 4}} {
		counts, probs := tuples(t, d, scheme, at...)
		if dev := chi2(counts, probs); dev < 3*maxDeviate {
			t.Errorf("positions %v, of one pool, look independent (%.1f standard deviations): the test is vacuous", at, dev)
		}
		for c := range probs {
			probs[c] *= 1 - 1.0/pool
			if i := c / 3; c%3 == i {
				probs[c] += d.Prob(uint64(i)) / pool
			}
		}
		checkCounts(t, counts, probs)
	}
}

// Each single sample without replacement is exact, from wherever in the pool it
// takes its keys, also where a pool has fewer keys than the sample.
func TestReuseWithoutReplacementDrawsEachSampleInOrder(t *testing.T) {
	for _, d := range []Distribution{Uniform(4), mustPower(t, []float64{40, 0, 3, 1, 9}, 0.75)} {
		for _, scheme := range []Scheme{Reuse{Pool: 5, Uses: 3}, Reuse{Pool: 2, Uses: 2}, Reuse{Pool: 5, Uses: 3, Postpone: true}} {
			for _, settle := range []bool{false, true} {
				const n, samples = 3, 4
				index, probs := orders(probsOf(d), n)
				counts := make([][]int, samples)
				for i := range counts {
					counts[i] = make([]int, len(index))
				}
				w := &fakeWorker{dim: testDim}
				for seed := range uint64(8000) {
					s := newSampler(t, d, scheme, true, seed)
					if settle {
						s.maxRejected = 3
					}
					for i := range samples {
						var rows []int
						for _, k := range draw(t, s, w, n) {
							rows = append(rows, int(k-testBase))
						}
						j, ok := index[fmt.Sprint(rows)]
						if !ok {
							t.Fatalf("sample %v is impossible", rows)
						}
						counts[i][j]++
					}
				}
				for i := range counts {
					if dev := chi2(counts[i], probs); dev > maxDeviate {
						t.Errorf("%s, %s, settle %v: sample %d is %.1f standard deviations from draws without replacement", d.Name(), scheme.Name(), settle, i, dev)
					}
				}
			}
		}
	}
}

// finishHalf prepares twice what it pulls, one by one, as a task does that
// knows only a bound on its needs, and counts the rows.
func finishHalf(t *testing.T, s *Sampler, w *fakeWorker, samples int) []int {
	t.Helper()
	counts := make([]int, s.rows)
	for range samples {
		id, err := s.Prepare(w, 10, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			var key [1]godwit.Key
			if err := s.Pull(context.Background(), w, id, key[:], make([]float32, testDim)); err != nil {
				t.Fatal(err)
			}
			counts[key[0]-testBase]++
		}
		s.Finish(id)
	}
	return counts
}

func TestPostponingKeepsTheLongTermFrequencies(t *testing.T) {
	for _, d := range dists(t) {
		// Once used, so that the counts are of independent draws.
		s := newSampler(t, d, Reuse{Pool: 60, Uses: 1, Postpone: true}, false, 1)
		w := &fakeWorker{dim: testDim, local: thirdIsLocal}
		counts := finishHalf(t, s, w, 20_000)
		if dev := chi2(counts, probsOf(d)); dev > maxDeviate {
			t.Errorf("%s: samples finished half-way are %.1f standard deviations from the target", d.Name(), dev)
		}
		if st := s.Stats(); st.PutOff < 20_000 {
			t.Errorf("%s: %d keys were put off, the test is vacuous", d.Name(), st.PutOff)
		}
		// If postponed keys were forgotten, local keys would come more often.
		forgetful := newSampler(t, d, Reuse{Pool: 60, Uses: 1, Postpone: true}, false, 1)
		forgetful.postpones = false
		if dev := chi2(finishHalf(t, forgetful, w, 20_000), probsOf(d)); dev < 3*maxDeviate {
			t.Errorf("%s: without postponed keys the frequencies are %.1f standard deviations from the target: the test is vacuous", d.Name(), dev)
		}
	}
}

func TestPostponingUsesTheWholeSampleLocalKeysFirst(t *testing.T) {
	for _, distinct := range []bool{false, true} {
		s := newSampler(t, Uniform(40), Reuse{Postpone: true}, distinct, 3)
		w := &fakeWorker{dim: testDim, local: thirdIsLocal}
		for range 200 {
			w.intents = nil
			var got []godwit.Key
			id, err := s.Prepare(w, 20, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{1, 7, 1, 1, 10} {
				keys, vals := make([]godwit.Key, n), make([]float32, n*testDim)
				if err := s.Pull(context.Background(), w, id, keys, vals); err != nil {
					t.Fatal(err)
				}
				if i := wrongValue(keys, vals, testDim); i >= 0 {
					t.Fatalf("value %d is %v, which is not of key %d", i, vals[i], keys[i/testDim])
				}
				got = append(got, keys...)
			}
			want := w.intents[0].keys
			local, away := 0, false
			for _, k := range want {
				if thirdIsLocal(k) {
					local++
				}
			}
			for i, k := range got {
				away = away || !thirdIsLocal(k)
				if i < local && away || i >= local && thirdIsLocal(k) {
					t.Fatalf("%v: %d keys are local, and do not come first", got, local)
				}
			}
			if a, b := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)); !slices.Equal(a, b) {
				t.Fatalf("pulled %v, announced %v", a, b)
			}
		}
	}
}

// A key that arrives while it is put off is used without a message.
func TestAKeyThatWasPutOffIsLookedForAgain(t *testing.T) {
	s := newSampler(t, Uniform(100), Reuse{Postpone: true}, false, 1)
	here := false
	w := &fakeWorker{dim: testDim, local: func(k godwit.Key) bool { return here || thirdIsLocal(k) }}
	id, err := s.Prepare(w, 30, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		keys := make([]godwit.Key, 5)
		if err := s.Pull(context.Background(), w, id, keys, make([]float32, 5*testDim)); err != nil {
			t.Fatal(err)
		}
	}
	here = true
	if err := s.Pull(context.Background(), w, id, make([]godwit.Key, 20), make([]float32, 20*testDim)); err != nil {
		t.Fatal(err)
	}
	if w.pulls != 0 || s.Stats().PutOff == 0 {
		t.Errorf("%d calls of Pull and %d keys put off, want none and some", w.pulls, s.Stats().PutOff)
	}
}

func TestDebtsAreBoundedByWhatWasOpen(t *testing.T) {
	for _, distinct := range []bool{false, true} {
		s := newSampler(t, LogUniform(40), Reuse{Pool: 60, Postpone: true}, distinct, 1)
		w := &fakeWorker{dim: testDim, local: func(godwit.Key) bool { return false }}
		for range 3000 {
			finishHalf(t, s, w, 1)
			if n := len(s.postponed.keys); n > 10 {
				t.Fatalf("%d keys are postponed, no more than 10 were ever open", n)
			}
		}
	}
}

// What a sample postponed and did not use comes first in the next one, is not postponed again, and outlasts samples that fail or are
// finished without being pulled.
func TestAPostponedKeyComesFirstInTheNextSampleThatIsPulled(t *testing.T) {
	s := newSampler(t, Uniform(1000), Reuse{Postpone: true, Uses: 1}, false, 5)
	var away godwit.Key // the only key that is not local
	w := &fakeWorker{dim: testDim, local: func(k godwit.Key) bool { return k != away }}
	prepare := func() godwit.SampleID {
		t.Helper()
		id, err := s.Prepare(w, 4, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	pull := func(id godwit.SampleID) godwit.Key {
		t.Helper()
		var key [1]godwit.Key
		if err := s.Pull(context.Background(), w, id, key[:], make([]float32, testDim)); err != nil {
			t.Fatal(err)
		}
		return key[0]
	}
	id := prepare()
	away = w.intents[0].keys[0]
	if k := pull(id); k == away || s.Stats().PutOff != 1 {
		t.Fatalf("key %d was not put off: %d comes first", away, k)
	}
	s.Finish(id)
	w.intErr = errors.New("no room")
	if _, err := s.Prepare(w, 4, 0, 1); err == nil {
		t.Fatal("a sample is prepared that could not be announced")
	}
	w.intErr = nil
	good := s.spec.Dist
	s.spec.Dist = wild{good, 1 << 40, 1000}
	if _, err := s.Prepare(w, 300, 0, 1); err == nil { // more than the pool has
		t.Fatal("a sample is prepared of rows that are not there")
	}
	s.spec.Dist = good
	s.Finish(prepare())
	if k := pull(prepare()); k != away || s.Stats().PutOff != 1 {
		t.Errorf("the first key is %d, and %d were put off, want key %d, which was put off once", k, s.Stats().PutOff, away)
	}
}
