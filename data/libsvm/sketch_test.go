package libsvm

import (
	"math"
	"math/rand/v2"
	"testing"
)

// zipf draws features of a law of Zipf, whose numbers say nothing of popularity,
// and their true counts.
func zipf(t *testing.T, seed uint64, entries int) (stream []uint32, count map[uint32]int) {
	t.Helper()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	law := rand.NewZipf(r, 1.05, 10, math.MaxUint32)
	count = map[uint32]int{}
	for range entries {
		f := uint32(law.Uint64() * 0x9e3779b1 >> 1 & math.MaxInt32)
		stream = append(stream, f)
		count[f]++
	}
	return stream, count
}

func TestASketchNeverCountsTooLittleAndRarelyTooMuch(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		stream, count := zipf(t, seed, 200_000)
		s := newSketch(len(stream), math.MaxInt32)
		if s.exact || len(s.cells) != sketchRows*len(stream) {
			t.Fatalf("%d cells for %d entries, want %d for each", len(s.cells), len(stream), sketchRows)
		}
		for _, f := range stream {
			s.add(f)
		}
		rare, over, far := 0, 0, 0
		for f, n := range count {
			got := s.count(f)
			if got < min(n, full) {
				t.Fatalf("seed %d: feature %d was added %d times and counts %d", seed, f, n, got)
			}
			if n < full {
				rare++
				if got > n {
					over++
				}
				if float64(got-n) > math.E {
					far++
				}
			}
		}
		t.Logf("of %d different features that occur fewer than %d times, %d count too much, %d by more than e", rare, full, over, far)
		if float64(far) > math.Exp(-sketchRows)*float64(rare) {
			t.Errorf("%d of %d estimates exceed the count by more than e, want %.2f%% at most", far, rare, 100*math.Exp(-sketchRows))
		}
		if rare == len(count) || rare < 10_000 {
			t.Errorf("%d of %d features are rare: the test is vacuous", rare, len(count))
		}
	}
}

// Where cells are few all are shared, and what is promised of every sketch must
// hold of full ones too.
func TestFullCellsStayFull(t *testing.T) {
	const seed = 4
	stream, count := zipf(t, seed, 50_000)
	for name, s := range map[string]*sketch{
		"shared": {cells: make([]uint8, sketchRows*50), width: 50},
		"exact":  newSketch(len(stream), 1<<16),
	} {
		most := 0
		for _, f := range stream {
			if s.exact {
				f &= 1<<16 - 1
			}
			before := s.count(f)
			s.add(f)
			if after := s.count(f); after != min(before+1, full) {
				t.Fatalf("%s: one more than %d is %d", name, before, after)
			}
			most = max(most, s.count(f))
		}
		for f, n := range count {
			if s.exact {
				f &= 1<<16 - 1
			}
			if got := s.count(f); got < min(n, full) {
				t.Fatalf("%s: feature %d was added %d times and counts %d", name, f, n, got)
			}
		}
		if most != full {
			t.Errorf("%s: the largest count is %d: the test is vacuous", name, most)
		}
	}
}

func TestFewFeaturesAreCountedExactly(t *testing.T) {
	s := newSketch(100, 7)
	for f := range uint32(7) {
		for range 50 * f {
			s.add(f)
		}
	}
	for f := range uint32(7) {
		if got, want := s.count(f), min(50*int(f), full); got != want {
			t.Errorf("feature %d counts %d, want %d", f, got, want)
		}
	}
	if len(s.cells) != 7 {
		t.Errorf("%d cells for 7 features", len(s.cells))
	}
}

func BenchmarkSketch(b *testing.B) {
	const entries = 1 << 20
	s := newSketch(entries, math.MaxInt32)
	r := rand.New(rand.NewPCG(1, 0))
	stream := make([]uint32, entries)
	for i := range stream {
		stream[i] = uint32(math.Exp(20 * r.Float64()))
	}
	for i := 0; b.Loop(); i++ {
		s.add(stream[i%entries])
	}
}
