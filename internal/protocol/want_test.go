package protocol

import (
	"testing"

	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

// Intents for keys whose main copies are here end; those for replicas go on, also where the copy is on its way.
func TestOnlyIntentsForMainCopiesEnd(t *testing.T) {
	c := newCluster(2, roundingModel(t, optim.AdaGrad{LR: 0.1}, filter.BF16{}), placement.Adaptive, false, Broken{})
	home, away := c.nodes[c.homes.Home(0)], c.nodes[1-c.homes.Home(0)]
	end := func(when string, n *testNode, want bool) {
		t.Helper()
		wanted := n.Holding(0).Wanted
		if got := n.UnwantOwned(n, 0); got != want || n.Holding(0).Wanted != (wanted && !want) {
			t.Errorf("%s: the intent has ended: %v, want %v; the key is wanted: %v", when, got, want, n.Holding(0).Wanted)
		}
	}
	end("there is no row", away, true)
	home.Want(home, 0)
	end("only the owner has the key", home, true)
	home.Want(home, 0)
	away.Want(away, 0)
	end("a copy is on its way", away, false)
	calm(t, c)
	if !away.holding(0).isReplica() {
		t.Fatalf("the key is %v: the test is vacuous", away.holding(0))
	}
	end("there is a copy", away, false)
	end("another node has a copy", home, true)
	calm(t, c)
	if away.holding(0) != owner {
		t.Errorf("the key is %v, want that it has moved to the only node that wants it", away.holding(0))
	}
	end("it has moved here", away, true)
	if err := c.check(); err != nil {
		t.Error(err)
	}
}
