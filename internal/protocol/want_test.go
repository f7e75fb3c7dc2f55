package protocol

import (
	"testing"

	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/wire"
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

// An intent for a key that is wanted changes nothing while the key is here, on its way or leaving, and asks for it again when it was taken away.
func TestAWantedKeyIsAskedForAgainWhenItWasTakenAway(t *testing.T) {
	for _, p := range []placement.Policy{placement.RelocateAll, placement.AdaPM, placement.Static} {
		c := newCluster(2, roundingModel(t, optim.AdaGrad{LR: 0.1}, filter.BF16{}), p, false, Broken{})
		home, away := c.nodes[c.homes.Home(0)], c.nodes[1-c.homes.Home(0)]
		again := func(when string, want bool) {
			t.Helper()
			away.WantAgain(away, 0)
			if got := away.Holding(0).Wanted; got != want {
				t.Errorf("%s, %s: the key is wanted: %v, want %v", p.Name(), when, got, want)
			}
		}
		away.Want(away, 0)
		if p == placement.Static {
			again("nobody asks", false)
			continue
		}
		again("on its way", true)
		calm(t, c)
		if away.holding(0) != owner {
			t.Fatalf("%s: the key is %v: the test is vacuous", p.Name(), away.holding(0))
		}
		again("here", true)
		home.Request(home, &wire.Record{Kind: wire.Localize, Key: 0, Op: 1})
		calm(t, c)
		if taken := p == placement.RelocateAll; away.Holding(0).Wanted == taken { // another policy asks for it by itself
			t.Fatalf("%s: the key was asked for by somebody else, and is wanted here: %v", p.Name(), !taken)
		}
		again("taken away", true)
		calm(t, c)
		if away.holding(0) != owner && !away.holding(0).isReplica() {
			t.Errorf("%s: the key was not asked for again: %v", p.Name(), away.holding(0))
		}
		away.Unwant(away, 0) // the one intent that there is
		if away.Holding(0).Wanted {
			t.Errorf("%s: an intent is left", p.Name())
		}
	}
}

// A main copy that leaves comes back if its node has one more intent for it, and a row that nobody wants is wanted then.
func TestOneMoreIntentWhileTheMainCopyLeaves(t *testing.T) {
	c := newCluster(2, roundingModel(t, optim.AdaGrad{LR: 0.1}, filter.BF16{}), placement.RelocateAll, false, Broken{})
	home, away := c.nodes[c.homes.Home(0)], c.nodes[1-c.homes.Home(0)]
	home.WantAgain(home, 0)
	if !home.Holding(0).Wanted {
		t.Error("the row was here without an intent, and is not wanted")
	}
	home.Unwant(home, 0)
	away.Want(away, 0)
	calm(t, c)
	home.Request(home, &wire.Record{Kind: wire.Localize, Key: 0, Op: 1})
	for away.holding(0) != frozen {
		busy := c.busy()
		if len(busy) == 0 {
			t.Fatal("the main copy does not leave")
		}
		if err := c.deliver(busy[0]); err != nil {
			t.Fatal(err)
		}
	}
	away.WantAgain(away, 0)
	calm(t, c)
	if away.holding(0) != owner {
		t.Errorf("the key is %v, want that it came back", away.holding(0))
	}
}
