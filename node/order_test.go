package node

import (
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

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
