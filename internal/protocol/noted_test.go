package protocol

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// short pushes to a key in the short way alone, and returns where.
func (n *testNode) short(k godwit.Key, push []float32) Place {
	r, _ := n.st.Find(k)
	t, _ := n.cfg.Model.Locate(k)
	return n.cfg.Update(t).Push(n.st.Header(r), k, push, n.cut.settled)
}

// heldElsewhere returns two nodes of which one has the main copy of key 0, and the other a copy.
func heldElsewhere(t *testing.T) (c *cluster, home, away *testNode) {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	c = newCluster(2, m, placement.Adaptive, false, Broken{})
	home, away = c.nodes[c.homes.Home(0)], c.nodes[1-c.homes.Home(0)]
	home.Want(home, 0)
	away.Want(away, 0)
	calm(t, c)
	if away.holding(0) != fresh || home.holding(0) != owner {
		t.Fatalf("%v and %v: the test is vacuous", home.holding(0), away.holding(0))
	}
	return c, home, away
}

// A push needs the row of a copy alone where the next round sends the row anyhow: from the second on, until that round, or a write waits, or a
// refresh comes, as the push after that is a use. A push to a main copy with holders needs the row alone until the next round.
func TestAPushThatChangesNothingOfTheSideNeedsTheRowAlone(t *testing.T) {
	one := []float32{1}
	want := func(n *testNode, when string, p Place) {
		t.Helper()
		if got := n.short(0, one); got != p {
			t.Errorf("%s: a short push is served %d, want %d", when, got, p)
		}
	}

	c, home, away := heldElsewhere(t)
	for _, x := range []struct {
		n *testNode
		p Place
	}{{home, AtOwner}, {away, AtReplica}} {
		want(x.n, "at rest", Elsewhere)
		x.n.Push(0, one)
		want(x.n, "after a push", x.p)
		x.n.Round(x.n, false, false)
		want(x.n, "after a round", Elsewhere)
		x.n.Push(0, one)
		want(x.n, "after another push", x.p)
		calm(t, c)
		want(x.n, "at rest again", Elsewhere)
	}
	if got := home.row(0)[0]; got != 8 {
		t.Errorf("the row is %v after 8 pushes of 1", got)
	}

	c, home, away = heldElsewhere(t)
	away.Push(0, one)
	home.Push(0, one)
	home.Round(home, false, false)
	for len(c.busy()) > 0 {
		if err := c.deliver(c.busy()[0]); err != nil {
			t.Fatal(err)
		}
	}
	want(away, "after a refresh", Elsewhere)

	_, _, away = heldElsewhere(t)
	away.Push(0, one)
	away.Round(away, false, false)
	away.Push(0, one)
	want(away, "while an update is in flight", AtReplica)
	away.Request(away, &wire.Record{Kind: wire.Set, Key: 0, Origin: away.id, Op: 1, Vals: []float32{7}})
	want(away, "while a Set waits", Elsewhere)
	if p := away.Push(0, one); p != Elsewhere {
		t.Errorf("a push overtakes a Set that waits: it is served %d", p)
	}

	// A main copy that nobody holds yet is on no list.
	c, home, away = heldElsewhere(t)
	away.Unwant(away, 0)
	calm(t, c)
	ref, _ := home.st.Find(0)
	home.setWants(home.st.Header(ref), mostCounted+1)
	home.Push(0, one)
	want(home, "with a side and no holders", Elsewhere)

	// Uses of what was learned count, each.
	_, _, away = heldElsewhere(t)
	away.learner.Wish(0)
	away.Push(0, one)
	away.Push(0, one)
	if n := away.takeUses(0); n != 2 {
		t.Errorf("%d uses count, want 2", n)
	}
}

// An update that is too small to be sent is looked at again after the next push.
func TestAPushToAnUpdateThatIsHeldIsNoted(t *testing.T) {
	c, home, away := heldElsewhere(t)
	away.cfg.sync.Threshold = 2.5
	for range 2 {
		away.Push(0, []float32{1})
		calm(t, c)
		if away.holding(0) != dirty {
			t.Fatalf("the copy is %v: the test is vacuous", away.holding(0))
		}
	}
	away.Push(0, []float32{1})
	calm(t, c)
	if away.holding(0) != fresh || home.row(0)[0] != 3 {
		t.Errorf("the copy is %v, the row %v", away.holding(0), home.row(0))
	}
}
