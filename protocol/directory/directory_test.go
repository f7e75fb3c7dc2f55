package directory

import (
	"math"
	"testing"

	"github.com/godwit-ps/godwit"
)

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
			for _, m := range h.slot {
				count[m]++
			}
			mean := float64(len(h.slot)) / float64(n)
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
	for _, keys := range []uint64{1, 2, maxSlots - 1, maxSlots, maxSlots + 1, 3*maxSlots + 7} {
		h := NewHomes(keys, []godwit.NodeID{3, 9})
		if len(h.slot) > maxSlots {
			t.Errorf("%d keys make %d slots, at most %d are allowed", keys, len(h.slot), maxSlots)
		}
		for _, k := range []uint64{0, keys / 2, keys - 1} {
			if m := h.Home(godwit.Key(k)); m != 3 && m != 9 {
				t.Errorf("of %d keys, key %d has its home at node %d, the members are 3 and 9", keys, k, m)
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

func TestADirectoryKnowsOwnersAndHints(t *testing.T) {
	d := New(1000, 2, true)
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
	if _, ok := d.Hint(997); ok {
		t.Error("a new directory has a hint")
	}
	for _, n := range []godwit.NodeID{0, 254} {
		d.SetHint(997, n)
		if got, ok := d.Hint(997); !ok || got != n {
			t.Errorf("the hint is %d, %v, want %d", got, ok, n)
		}
	}
	// Nodes that do not fit in a byte are not noted.
	d.SetHint(997, 255)
	if got, _ := d.Hint(997); got != 254 {
		t.Errorf("the hint is %d", got)
	}
	// Without hints there are none.
	d = New(1000, 2, false)
	d.SetHint(1, 1)
	if _, ok := d.Hint(1); ok {
		t.Error("a directory without hints has one")
	}
}
