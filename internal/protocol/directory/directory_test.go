package directory

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random tests")

func members(n int) []godwit.NodeID {
	var ids []godwit.NodeID
	for i := range n {
		ids = append(ids, godwit.NodeID(i))
	}
	return ids
}

// The slots are dealt by independent hashes, so a node's share is binomial.
// Five standard deviations are exceeded once in two million tries.
func TestHomesAreSpreadEvenly(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 64, 300} {
		for _, keys := range []uint64{1 << 16, 1_000_000} {
			h := NewHomes(keys, members(n))
			count := make([]int, n)
			for i := range h.len() {
				count[h.at(i)]++
			}
			mean := float64(h.len()) / float64(n)
			spread := 5*math.Sqrt(mean*(1-1/float64(n))) + 0.5
			for m, c := range count {
				if math.Abs(float64(c)-mean) > spread {
					t.Errorf("%d keys, %d nodes: node %d is home of %d slots, want %.0f ± %.0f", keys, n, m, c, mean, spread)
				}
			}
		}
	}
}

func TestEveryKeyHasAMemberForHome(t *testing.T) {
	for _, keys := range []uint64{1, 2, maxSlots - 1, maxSlots, maxSlots + 1, 3*maxSlots + 7, 1 << 30, 1<<30 + 1, 1<<46 + 12345, 1 << 48} {
		h := NewHomes(keys, []godwit.NodeID{3, 9})
		if h.len() > maxSlots {
			t.Errorf("%d keys make %d slots, at most %d are allowed", keys, h.len(), maxSlots)
		}
		for _, k := range []uint64{0, keys / 2, keys - 1} {
			if m := h.Home(godwit.Key(k)); m != 3 && m != 9 {
				t.Errorf("of %d keys, key %d has its home at node %d, the members are 3 and 9", keys, k, m)
			}
		}
	}
}

// A slot takes as many bits as the number of a member, rounded up to a power of two, and says
// who has the largest weight there.
func TestATableOfHomesHasFewBitsASlot(t *testing.T) {
	for _, x := range []struct{ members, bytes int }{
		{1, maxSlots / 8}, {2, maxSlots / 8}, {3, maxSlots / 4}, {4, maxSlots / 4}, {5, maxSlots / 2}, {16, maxSlots / 2},
		{17, maxSlots}, {256, maxSlots}, {257, 2 * maxSlots},
	} {
		ids := make([]godwit.NodeID, x.members)
		for i := range ids {
			ids[i] = godwit.NodeID(7 * i)
		}
		h := NewHomes(maxSlots, ids)
		if h.Bytes() != x.bytes {
			t.Errorf("with %d members, the table takes %d bytes, want %d", x.members, h.Bytes(), x.bytes)
		}
		for k := godwit.Key(0); k < maxSlots; k += 97 {
			want := slices.MaxFunc(ids, func(a, b godwit.NodeID) int { return cmp.Compare(weight(uint64(k), a), weight(uint64(k), b)) })
			if got := h.Home(k); got != want {
				t.Fatalf("with %d members, key %d has its home at node %d, want %d", x.members, k, got, want)
			}
		}
	}
}

func TestAChangeOfMembersMovesOnlyTheSlotsConcerned(t *testing.T) {
	const keys = 1 << 16
	before := NewHomes(keys, members(8))
	after := NewHomes(keys, members(9))
	moved := 0
	for k := godwit.Key(0); k < keys; k++ {
		a, b := before.Home(k), after.Home(k)
		if a == b {
			continue
		}
		moved++
		if b != 8 {
			t.Fatalf("when node 8 joins, key %d moves from node %d to node %d", k, a, b)
		}
	}
	if mean := keys / 9.0; math.Abs(float64(moved)-mean) > 5*math.Sqrt(mean) {
		t.Errorf("when a ninth node joins, %d keys move, want about %.0f", moved, mean)
	}
	// And back: when it leaves, its keys go and no others.
	left := NewHomes(keys, []godwit.NodeID{0, 1, 2, 4, 5, 6, 7})
	for k := godwit.Key(0); k < keys; k++ {
		if a, b := before.Home(k), left.Home(k); a != b && a != 3 {
			t.Fatalf("when node 3 leaves, key %d moves from node %d to node %d", k, a, b)
		}
	}
}

func TestHomesDependOnTheMembersAndNotOnTheirOrder(t *testing.T) {
	a, b := NewHomes(5000, []godwit.NodeID{0, 1, 2}), NewHomes(5000, []godwit.NodeID{2, 0, 1})
	for k := godwit.Key(0); k < 5000; k++ {
		if a.Home(k) != b.Home(k) {
			t.Fatalf("key %d has its home at node %d or %d", k, a.Home(k), b.Home(k))
		}
	}
}

func TestADirectoryKnowsOwners(t *testing.T) {
	d := New(NewHomes(1000, members(3)), 0, 2, true)
	if _, ok := d.Away(5); ok {
		t.Error("a new directory knows an owner")
	}
	d.SetAway(5, Owner{Node: 3, Epoch: 7})
	if o, ok := d.Away(5); !ok || o != (Owner{Node: 3, Epoch: 7}) || d.AwayLen() != 1 {
		t.Errorf("the owner is %v, %v, of %d", o, ok, d.AwayLen())
	}
	d.Back(5)
	if _, ok := d.Away(5); ok || d.AwayLen() != 0 {
		t.Error("a key that came back is still away")
	}
}

// However many keys there could be, a directory has hints of those that were seen
// elsewhere than at home: the last word on each, while there are not too many.
func TestADirectoryHasHintsOfWhatWasSeenAwayFromHome(t *testing.T) {
	for _, keys := range []uint64{100, 1 << 20, 1 << 46, 1 << 48} {
		const shift, self = 4, 2
		homes := NewHomes(keys, members(5))
		d := New(homes, self, shift, true)
		rng := rand.New(rand.NewPCG(*seed, keys))
		some := make([]godwit.Key, 3000)
		for i := range some {
			some[i] = godwit.Key(rng.Uint64N(keys>>shift) << shift)
		}
		want := map[godwit.Key]godwit.NodeID{}
		for range 50_000 {
			k, n := some[rng.IntN(len(some))], godwit.NodeID(rng.IntN(5))
			if rng.IntN(8) == 0 {
				n = godwit.NoNode - 1
			}
			switch home := homes.Home(k); {
			case home == self:
			case n == home || n == self:
				delete(want, k)
			default:
				want[k] = n
			}
			d.SetHint(k, n)
			k = some[rng.IntN(len(some))]
			if n, ok := d.Hint(k); ok != has(want, k) || ok && n != want[k] {
				t.Fatalf("-seed %d: of %d keys, the hint of key %d is %d, %v, want %d", *seed, keys, k, n, ok, want[k])
			}
		}
		if keys > 100 && len(want) < 500 {
			t.Errorf("%d keys have a hint: the test is vacuous", len(want))
		}
		if most := max(8*8*len(want), 4096); d.Bytes() > most {
			t.Errorf("%d hints take %d bytes, want at most %d", len(want), d.Bytes(), most)
		}
	}
	d := New(NewHomes(1000, members(3)), 0, 2, false)
	for k := range godwit.Key(1000) {
		d.SetHint(k, 1)
		if _, ok := d.Hint(k); ok {
			t.Fatal("a directory without hints has one")
		}
	}
}

func has(m map[godwit.Key]godwit.NodeID, k godwit.Key) bool { _, ok := m[k]; return ok }

// A shard that has seen more keys than it remembers forgets some, and is never
// wrong about the key that it was told of last.
func TestHintsHaveABound(t *testing.T) {
	var h hints
	rng := rand.New(rand.NewPCG(*seed, 1))
	want := map[uint64]godwit.NodeID{}
	for range 3 * maxPlaces {
		x, n := rng.Uint64N(1<<48), godwit.NodeID(rng.IntN(1000))
		h.set(x, n)
		want[x] = n
		if got, ok := h.get(x); !ok || got != n {
			t.Fatalf("-seed %d: a hint is %d, %v when %d was just said", *seed, got, ok, n)
		}
	}
	if len(h.places) != maxPlaces || 4*h.n > 3*maxPlaces || 2*h.n < maxPlaces {
		t.Errorf("-seed %d: %d hints in %d places, want about three quarters of %d", *seed, h.n, len(h.places), maxPlaces)
	}
	kept := 0
	for x, n := range want {
		if got, ok := h.get(x); ok {
			if kept++; got != n {
				t.Fatalf("-seed %d: a hint is %d, %d was said", *seed, got, n)
			}
		}
		h.drop(x)
	}
	if kept < maxPlaces/2 || h.n != 0 {
		t.Errorf("-seed %d: %d hints were kept, and %d are left when all were dropped", *seed, kept, h.n)
	}
}

// Whatever part of a large key space a task uses, many nodes are home of it.
func TestHomesOfAFewKeysOfALargeSpaceAreSpreadEvenly(t *testing.T) {
	for _, log := range []uint{20, 30, 34, 46, 48} {
		keys := uint64(1) << log
		h := NewHomes(keys, members(4))
		for name, key := range map[string]func(i uint64) uint64{
			"the first":           func(i uint64) uint64 { return i << 10 },
			"the last":            func(i uint64) uint64 { return keys - 1 - i<<10 },
			"far apart and alike": func(i uint64) uint64 { return i << (log - 10) },
		} {
			var count [4]int
			for i := range uint64(1 << 10) {
				count[h.Home(godwit.Key(key(i)))]++
			}
			for n, c := range count {
				if log > 30 && (c < 1<<6 || c > 1<<9) {
					t.Errorf("2^%d keys: of 1024 keys, %s, node %d is home of %d", log, name, n, c)
				}
			}
		}
	}
}

func BenchmarkHints(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1000, 100_000} {
		d := New(NewHomes(1<<30, members(4)), 0, 9, true)
		keys := make([]godwit.Key, n)
		for i := range keys {
			keys[i] = godwit.Key(rng.Uint64N(1<<21) << 9)
			d.SetHint(keys[i], 1)
		}
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			i := 0
			for b.Loop() {
				d.Hint(keys[i])
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
	}
}

// A directory knows what a map would, whatever moves away and comes back.
func TestADirectoryKnowsAllThatAreAway(t *testing.T) {
	t.Logf("seed %d", *seed)
	rng := rand.New(rand.NewPCG(*seed, 7))
	const shift = 6
	d := New(NewHomes(1<<48, members(4)), 0, shift, true)
	want := map[godwit.Key]Owner{}
	for range 20_000 {
		k := godwit.Key(rng.IntN(3000)) << shift
		if rng.IntN(4) == 0 {
			k += 1<<48 - 3000<<shift
		}
		if rng.IntN(5) < 2 {
			d.Back(k)
			delete(want, k)
		} else {
			o := Owner{Node: godwit.NodeID(rng.IntN(1<<16 - 1)), Epoch: godwit.Epoch(rng.Uint32())}
			d.SetAway(k, o)
			want[k] = o
		}
		k = godwit.Key(rng.IntN(3000)) << shift
		o, ok := d.Away(k)
		if x, is := want[k]; o != x || ok != is || d.AwayLen() != len(want) {
			t.Fatalf("the owner of key %d is %v, %v, want %v, %v; %d are away, want %d", k, o, ok, x, is, d.AwayLen(), len(want))
		}
	}
	for k, x := range want {
		if o, ok := d.Away(k); !ok || o != x {
			t.Fatalf("the owner of key %d is %v, %v, want %v", k, o, ok, x)
		}
	}
}
