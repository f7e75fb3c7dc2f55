package node

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

func TestManyKeysAreAskedForShardByShard(t *testing.T) {
	c := local(t, 2, Config{Model: model(t, 5000, 1), Policy: placement.RelocateAll, Workers: 1})
	n := c.Nodes[0]
	rng := rand.New(rand.NewPCG(3, 4))
	var o order
	for _, many := range []int{len(n.shards), 3000, len(n.shards) + 1} {
		keys := make([]godwit.Key, many)
		for i := range keys {
			keys[i] = godwit.Key(rng.IntN(2000)) // some of them twice
		}
		list := o.positions(n, keys)
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
		o.sort(n, sorted)
		for i, at := range o.positions(n, keys) {
			if sorted[i] != keys[at] {
				t.Fatalf("key %d is %d, want %d", i, sorted[i], keys[at])
			}
		}
	}
	few := []godwit.Key{3, 1, 2}
	o.sort(n, few)
	if !slices.Equal(few, []godwit.Key{3, 1, 2}) || o.positions(n, few) != nil {
		t.Errorf("few keys were put in order: %v", few)
	}
}

// What a call of many keys asks for comes, whatever the order in which it is
// asked for, and keys that are in it twice do no harm.
func TestALocalizeOfManyKeysBringsThemAll(t *testing.T) {
	const rows = 2000
	c := local(t, 2, Config{Model: model(t, rows, 2), Policy: placement.RelocateAll, Workers: 1})
	ctx := background(t)
	rng := rand.New(rand.NewPCG(5, 6))
	var keys []godwit.Key
	for _, k := range rng.Perm(rows) {
		keys = append(keys, godwit.Key(k))
		if k%3 == 0 {
			keys = append(keys, godwit.Key(k))
		}
	}
	vals := make([]float32, 2*len(keys))
	for i, k := range keys {
		vals[2*i], vals[2*i+1] = float32(k), 1
	}
	must(t, c.Nodes[0].Worker(0).Set(ctx, keys, vals))
	for turn := range 3 {
		w := c.Nodes[1-turn%2].Worker(0)
		must(t, w.Localize(ctx, keys))
		got := make([]float32, 2)
		for _, k := range keys {
			if !w.PullIfLocal(k, got) || got[0] != float32(k) {
				t.Fatalf("turn %d: key %d is not here, or is %v", turn, k, got)
			}
		}
	}
	if s := sum(c); s.Moves < 2*rows {
		t.Errorf("%d moves: the test is vacuous", s.Moves)
	}
}
