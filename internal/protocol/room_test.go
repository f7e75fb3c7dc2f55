package protocol

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// follow moves keys to who asks for them, and gives copies to who asks for those;
// when one node is left that has one, the key goes there.
type follow struct{}

func (follow) Name() string                { return "follow" }
func (follow) OnIntent(bool) placement.Ask { return placement.Copy }
func (follow) Everywhere(bool) bool        { return false }
func (follow) Decide(s placement.Situation) placement.Action {
	switch {
	case s.Asked == placement.Move:
		return placement.Action{Verb: placement.Relocate, To: s.Asker}
	case s.Asked == placement.Copy:
		return placement.Action{Verb: placement.Replicate}
	case len(s.Others) == 1:
		return placement.Action{Verb: placement.Relocate, To: s.Others[0]}
	}
	return placement.Action{Verb: placement.Keep}
}

// A move sends rows to nodes that did not ask for them just now: to the holders
// that lack something, and to a holder that becomes the owner. It does not take
// place while one of them does not read.
func TestAKeyDoesNotMoveWhileSomebodyWouldNotTakeItsRow(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 30, Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what string
		then func(c *cluster, k godwit.Key) // nodes 1 and 2 hold copies of node 0's key, which has changed
	}{
		{"a holder lacks something", func(c *cluster, k godwit.Key) {
			c.nodes[3].Request(c.nodes[3], &wire.Record{Kind: wire.Localize, Key: k, Op: 9})
		}},
		{"a holder becomes the owner", func(c *cluster, k godwit.Key) { c.nodes[1].Unwant(c.nodes[1], k) }},
	} {
		for _, takes := range []bool{true, false} {
			c := newCluster(4, model, follow{}, false, Broken{})
			k := godwit.Key(0)
			for c.homes.Home(k) != 0 {
				k++
			}
			rng := rand.New(rand.NewPCG(1, 2))
			for _, n := range c.nodes[1:3] {
				n.Want(n, k)
			}
			if err := c.settle(rng, 1000); err != nil {
				t.Fatal(err)
			}
			c.nodes[0].Push(k, []float32{1, 1})
			c.takes = func() bool { return takes }
			var kinds []wire.Kind
			c.sent = func(from, to godwit.NodeID, r *wire.Record) {
				if from == 0 {
					kinds = append(kinds, r.Kind)
				}
			}
			x.then(c, k)
			for len(c.busy()) > 0 { // no rounds
				if err := c.deliver(c.busy()[0]); err != nil {
					t.Fatal(err)
				}
			}
			if moved := slices.Contains(kinds, wire.Transfer); moved != takes {
				t.Errorf("%s, and it takes rows: %v. The owner sends %v", x.what, takes, kinds)
			}
			if slices.Contains(kinds, wire.Refresh) && !takes {
				t.Errorf("%s and takes none: the owner sends %v", x.what, kinds)
			}
			c.takes = nil
			if err := c.settle(rng, 1000); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A key that there is no room to ask for is asked for later, in the order in which
// it was wanted, unless nobody wants it any more; what waits for it waits for that.
func TestKeysAreAskedForWhenThereIsRoom(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 30, Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(2, model, placement.AdaptiveReplicateOnly, false, Broken{})
	c.rows = 2
	n := c.nodes[0]
	var keys []godwit.Key
	for k := godwit.Key(0); len(keys) < 6; k++ {
		if c.homes.Home(k) == 1 {
			keys = append(keys, k)
			n.Want(n, k)
		}
	}
	var asked []godwit.Key
	c.sent = func(_, _ godwit.NodeID, r *wire.Record) {
		if r.Kind == wire.Interest {
			asked = append(asked, r.Key)
		}
	}
	n.Unwant(n, keys[2])
	n.Request(n, &wire.Record{Kind: wire.Pull, Key: keys[2], Op: 1})
	n.Request(n, &wire.Record{Kind: wire.Pull, Key: keys[5], Op: 2})
	n.AskDue(n)
	if len(asked) > 0 || len(n.replies) > 0 {
		t.Fatalf("the keys %v were asked for, %d pulls answered: there is no room", asked, len(n.replies))
	}
	if err := c.settle(rand.New(rand.NewPCG(1, 2)), 1000); err != nil {
		t.Fatal(err)
	}
	if want := keys[3:]; !slices.Equal(asked, want) {
		t.Errorf("the keys %v were asked for later, want %v", asked, want)
	}
	if len(n.replies) != 2 {
		t.Errorf("%d pulls were answered, want 2", len(n.replies))
	}
	if n.holding(keys[2]) != absent {
		t.Errorf("the key that nobody wants is %v", n.holding(keys[2]))
	}
	if n.asked != [16]int{} {
		t.Errorf("%v rows count as asked for", n.asked)
	}
}

// A row that changed is on the list of the next round, also after it moved away. That
// does not take the key off the list of keys to ask for, if this node wants it again.
func TestAKeyThatWaitsToBeAskedForOutlastsARound(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 30, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(3, model, follow{}, false, Broken{})
	c.rows = 1
	var keys []godwit.Key // of node 0
	for k := godwit.Key(0); len(keys) < 2; k++ {
		if c.homes.Home(k) == 0 {
			keys = append(keys, k)
		}
	}
	k, other := keys[0], keys[1]
	home, old, holder := c.nodes[0], c.nodes[1], c.nodes[2]
	localize := func(n *testNode) { n.Request(n, &wire.Record{Kind: wire.Localize, Key: k, Op: 1}) }
	localize(old)
	rest(t, c)
	old.Want(old, k)
	holder.Hold(holder, k)
	rest(t, c)
	if old.holding(k) != owner || !holder.holding(k).isReplica() {
		t.Fatalf("the key is %v and %v, want owner and replica: the test is vacuous", old.holding(k), holder.holding(k))
	}
	old.Want(old, other) // now no second row can be asked of node 0
	delete(c.pipes, [2]godwit.NodeID{1, 0})
	old.Push(k, []float32{1})
	localize(home)
	for old.holding(k) != placeholder {
		for _, p := range c.busy() {
			if err := c.deliver(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !old.Due() {
		t.Fatal("the key was asked for at once: the test is vacuous")
	}
	old.Round(old, false, false)
	old.asked = [16]int{}
	asked := false
	c.sent = func(from, _ godwit.NodeID, r *wire.Record) {
		asked = asked || from == old.id && r.Kind == wire.Interest && r.Key == k
	}
	old.AskDue(old)
	if !asked {
		t.Error("there is room, and the key that is wanted is not asked for")
	}
}
