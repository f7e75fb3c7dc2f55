package store

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
)

// all returns the keys of a range that a set has.
func all(s *KeySet, first, end godwit.Key) (keys []godwit.Key) {
	for k, ok := s.Next(first, end); ok; k, ok = s.Next(k+1, end) {
		keys = append(keys, k)
	}
	return keys
}

func TestAKeySetHasWhatWasAddedInOrder(t *testing.T) {
	for _, keys := range []uint64{1, 63, 64, 65, 1<<minPage - 1, 1 << minPage, 1<<minPage + 1, 1_000_000, maxPages<<minPage + 1} {
		seed := max(*seedFlag, 1)
		rng := rand.New(rand.NewPCG(seed, keys))
		s := NewKeySet(keys)
		if len(s.pages) > maxPages {
			t.Errorf("%d keys take %d pages, want at most %d", keys, len(s.pages), maxPages)
		}
		if k, ok := s.Next(0, godwit.Key(keys)); ok {
			t.Errorf("an empty set has key %d", k)
		}
		want := []godwit.Key{0, godwit.Key(keys - 1)}
		for range 1000 {
			want = append(want, godwit.Key(rng.Uint64N(keys)))
		}
		for _, k := range want[:500] {
			s.Add(k)
		}
		s.AddAll(want[400:700])
		slices.Sort(want[700:])
		s.AddAll(want[700:])
		slices.Sort(want)
		want = slices.Compact(want)
		if got := all(s, 0, godwit.Key(keys)+5); !slices.Equal(got, want) {
			t.Errorf("-seed %d: of %d keys the set has %d, want %d", seed, keys, len(got), len(want))
		}
		for range 100 {
			first, end := godwit.Key(rng.Uint64N(keys+1)), godwit.Key(rng.Uint64N(keys+1))
			var part []godwit.Key
			for _, k := range want {
				if first <= k && k < end {
					part = append(part, k)
				}
			}
			if got := all(s, first, end); !slices.Equal(got, part) {
				t.Errorf("-seed %d: in %d … %d the set has %v, want %v", seed, first, end, got, part)
			}
		}
	}
}

func TestAKeySetIsAddedToFromAllSides(t *testing.T) {
	const keys = 1 << 17
	s := NewKeySet(keys)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for k := i; k < keys; k += 4 {
				s.Add(godwit.Key(k))
				if got, ok := s.Next(godwit.Key(k), keys); !ok || got != godwit.Key(k) {
					t.Errorf("key %d was added, and the next one is %d", k, got)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := len(all(s, 0, keys)); n != keys {
		t.Errorf("the set has %d of %d keys", n, keys)
	}
}

func BenchmarkKeySetNext(b *testing.B) {
	s := NewKeySet(1 << 20)
	for k := range godwit.Key(1 << 20) {
		if k%3 == 0 {
			s.Add(k)
		}
	}
	n := 0
	for b.Loop() {
		for k, ok := s.Next(0, 1<<20); ok; k, ok = s.Next(k+1, 1<<20) {
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/key")
}
