package shards

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

func TestManyKeysAreAskedForShardByShard(t *testing.T) {
	for nodes := range 6 {
		n := setOf(t, nodes+1, godwit.Table{Name: "t", Rows: 5000, Dim: 1})
		shardByShard(t, n, len(n.shards), 2)
		shardByShard(t, n, len(n.shards)+1, 2)
		for _, parts := range []int{2, 3, 6} {
			shardByShard(t, n, parts*len(n.shards), max(min(parts, nodes+1), 2))
		}
	}
	n := setOf(t, 2, godwit.Table{Name: "t", Rows: 5000, Dim: 1})
	few := []godwit.Key{3, 1, 2}
	var o Order
	o.Sort(n, few)
	if !slices.Equal(few, []godwit.Key{3, 1, 2}) || o.Positions(n, few) != nil {
		t.Errorf("few keys were put in order: %v", few)
	}
}

// shardByShard has so many keys put in order, by that many parts of each shard.
func shardByShard(t *testing.T, n *Set, many, parts int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	var o Order
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
		a, b := n.part(keys[before], parts), n.part(keys[at], parts)
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
