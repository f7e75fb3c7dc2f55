package shards

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

func TestManyKeysAreAskedForShardByShard(t *testing.T) {
	n := setOf(t, 2, godwit.Table{Name: "t", Rows: 5000, Dim: 1})
	rng := rand.New(rand.NewPCG(3, 4))
	var o Order
	for _, many := range []int{len(n.shards), 3000, len(n.shards) + 1} {
		keys := make([]godwit.Key, many)
		for i := range keys {
			keys[i] = godwit.Key(rng.IntN(2000)) // some of them twice
		}
		list := o.Positions(n, keys)
		if len(list) != many {
			t.Fatalf("%d positions of %d keys", len(list), many)
		}
		twice := 0
		seen := make([]bool, many)
		for i, at := range list {
			if seen[at] {
				t.Fatalf("position %d comes twice", at)
			}
			seen[at] = true
			if i == 0 {
				continue
			}
			before := list[i-1]
			a, b := n.part(keys[before]), n.part(keys[at])
			if a > b || a == b && before > at {
				t.Fatalf("position %d, key %d of part %d, comes before position %d, key %d of part %d", before, keys[before], a, at, keys[at], b)
			}
			if keys[before] == keys[at] {
				twice++
			}
		}
		if twice == 0 {
			t.Error("no key was there twice next to itself: the test is vacuous")
		}
		sorted := slices.Clone(keys)
		o.Sort(n, sorted)
		for i, at := range o.Positions(n, keys) {
			if sorted[i] != keys[at] {
				t.Fatalf("key %d is %d, want %d", i, sorted[i], keys[at])
			}
		}
	}
	few := []godwit.Key{3, 1, 2}
	o.Sort(n, few)
	if !slices.Equal(few, []godwit.Key{3, 1, 2}) || o.Positions(n, few) != nil {
		t.Errorf("few keys were put in order: %v", few)
	}
}
