package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/racing"
)

// all returns the keys of a range that a set has.
func all(s *KeySet, first, end godwit.Key) (keys []godwit.Key) {
	for k, ok := s.Next(first, end); ok; k, ok = s.Next(k+1, end) {
		keys = append(keys, k)
	}
	return keys
}

func TestAKeySetHasWhatWasAddedInOrder(t *testing.T) {
	for _, keys := range []uint64{1, 63, 64, 65, 1<<bitmapLog - 1, 1 << bitmapLog, 1<<bitmapLog + 1, 1_000_000, maxParts<<bitmapLog + 1, 1 << 34, 1<<46 - 5, 1 << 48} {
		seed := max(*seedFlag, 1)
		rng := rand.New(rand.NewPCG(seed, keys))
		s := NewKeySet(keys)
		if len(s.parts) > maxParts {
			t.Errorf("%d keys take a root of %d parts, want at most %d", keys, len(s.parts), maxParts)
		}
		if k, ok := s.Next(0, godwit.Key(keys)); ok {
			t.Errorf("an empty set has key %d", k)
		}
		want := drawn(rng, keys)
		third := len(want) / 3
		for _, k := range want[:third] {
			s.Add(k)
		}
		s.AddAll(want[third/2 : 2*third])
		slices.Sort(want[2*third:])
		s.AddAll(want[2*third:])
		slices.Sort(want)
		want = slices.Compact(want)
		if got := all(s, 0, godwit.Key(keys)+5); !slices.Equal(got, want) || s.Len() != len(want) {
			t.Errorf("-seed %d: of %d keys the set has %d and counts %d, want %d", seed, keys, len(got), s.Len(), len(want))
		}
		for range 30 {
			first, end := godwit.Key(rng.Uint64N(keys+1)), godwit.Key(rng.Uint64N(keys+1))
			if rng.IntN(2) == 0 {
				first = want[rng.IntN(len(want))]
				end = first + 1 + godwit.Key(rng.Uint64N(10_000))
			}
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

// drawn returns keys that lie alone, in runs, and densely in a few places.
func drawn(rng *rand.Rand, keys uint64) []godwit.Key {
	list := []godwit.Key{0, godwit.Key(keys - 1)}
	for range 400 {
		k := rng.Uint64N(keys)
		list = append(list, godwit.Key(k))
		for n := rng.IntN(4) * rng.IntN(30); n > 0 && k+1 < keys; n-- {
			k++
			list = append(list, godwit.Key(k))
		}
	}
	for range 4 {
		near := rng.Uint64N(keys)
		for range 500 {
			list = append(list, godwit.Key(min(near+rng.Uint64N(1<<rng.IntN(20)), keys-1)))
		}
	}
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// Memory follows the keys that are there, however many there could be.
func TestAKeySetTakes40BytesAKeyWhereTheyAreFarApartAndABitWhereTheyAreDense(t *testing.T) {
	if racing.Enabled {
		t.Skip("measures memory, in one goroutine")
	}
	for _, log := range []uint{20, 28, 30, 46, 48} {
		rng := rand.New(rand.NewPCG(max(*seedFlag, 1), uint64(log)))
		s := NewKeySet(1 << log)
		empty := s.Bytes()
		if empty > 1<<19 {
			t.Errorf("2^%d keys: an empty set takes %d bytes, want at most 512 KiB", log, empty)
		}
		for n := 1; n <= 100_000; n++ {
			s.Add(godwit.Key(rng.Uint64N(1 << log)))
			if n == 30_000 || n == 50_000 || n == 100_000 {
				each := float64(s.Bytes()-empty) / float64(n)
				if t.Logf("2^%d keys: %d random ones take %.1f bytes each", log, n, each); each > 40 {
					t.Errorf("2^%d keys: %d random ones take %.1f bytes each, want at most 40", log, n, each)
				}
			}
		}
		s = NewKeySet(1 << log)
		first := rng.Uint64N(1<<log - 1<<19)
		for k := range uint64(1 << 19) {
			s.Add(godwit.Key(first + k))
		}
		if bits := 8 * float64(s.Bytes()-empty) / (1 << 19); bits > 1.25 {
			t.Errorf("2^%d keys: %d consecutive ones take %.2f bits each, want at most 1.25", log, 1<<19, bits)
		}
	}
}

func TestAKeySetIsAddedToFromAllSides(t *testing.T) {
	for _, stride := range []godwit.Key{1, 61, 1 << 25} {
		const n = 1 << 16
		keys := n * stride
		s := NewKeySet(uint64(keys))
		var wg sync.WaitGroup
		for i := range godwit.Key(4) {
			wg.Go(func() {
				for j := i; j < n; j += 3 { // two of the four add the same keys
					k := j * stride
					if s.Add(k); j%2 == 0 {
						s.AddAll([]godwit.Key{k, k + stride - 1})
					}
					if got, ok := s.Next(k, keys); !ok || got != k {
						t.Errorf("key %d was added, and the next one is %d", k, got)
						return
					}
				}
			})
		}
		wg.Wait()
		want := n
		if stride > 1 {
			want += n / 2
		}
		if got := len(all(s, 0, keys)); got != want || s.Len() != want {
			t.Errorf("every %dth key: the set has %d keys and counts %d, want %d", stride, got, s.Len(), want)
		}
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

func BenchmarkKeySetNextFarApart(b *testing.B) {
	const n = 300_000
	rng := rand.New(rand.NewPCG(1, 1))
	s := NewKeySet(1 << 30)
	for range n {
		s.Add(godwit.Key(rng.Uint64N(1 << 30)))
	}
	got := 0
	for b.Loop() {
		for k, ok := s.Next(0, 1<<30); ok; k, ok = s.Next(k+1, 1<<30) {
			got++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(got), "ns/key")
}

func BenchmarkKeySetAdd(b *testing.B) {
	for _, log := range []uint{20, 30} {
		rng := rand.New(rand.NewPCG(1, 1))
		keys := make([]godwit.Key, 1<<18)
		for i := range keys {
			keys[i] = godwit.Key(rng.Uint64N(1 << log))
		}
		for _, all := range []bool{false, true} {
			b.Run(fmt.Sprintf("log=%d/all=%v", log, all), func(b *testing.B) {
				for b.Loop() {
					s := NewKeySet(1 << log)
					if all {
						s.AddAll(keys)
						continue
					}
					for _, k := range keys {
						s.Add(k)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
			})
		}
	}
}
