package protocol

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// Workers that announce nothing: rows of relaxed tables are copied, others move, and stay one
// copy, on which operations are atomic.
func TestWhatIsLearnedBreaksNoPromise(t *testing.T) {
	first, n := uint64(1), 10**seedsFlag
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	var sum Stats
	for _, policy := range []placement.Policy{placement.Adaptive, restless.Policy{}} {
		for seed := first; seed < first+uint64(n); seed++ {
			w := weather{nodes: 2 + int(seed%4), policy: policy, hints: seed%2 == 0, async: seed%3 == 0, repeat: seed%5 == 0, pauses: seed%7 == 0, learn: true}
			s := newStorm(seed, w)
			if err := s.run(); err != nil {
				t.Fatalf("-seed %d (%v): %v", seed, w, err)
			}
			for _, n := range s.c.nodes {
				sum.Learned += n.Stats.Learned
				sum.Copies += n.Stats.Copies
				sum.Drops += n.Stats.Drops
				sum.MovesIn += n.Stats.MovesIn
			}
		}
	}
	t.Logf("%+v", sum)
	if least := uint64(n); *seedFlag == 0 && (sum.Copies < least || sum.Drops < least/10 || sum.MovesIn < least/2) {
		t.Errorf("%+v: hardly anything was learned", sum)
	}
}

// learning is a cluster of one table, and a key of it whose home is node 0.
func learning(t *testing.T, nodes int, relaxed bool) (*cluster, godwit.Key) {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 4096, Dim: 1, Relaxed: relaxed})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(nodes, m, placement.Adaptive, true, Broken{})
	return c, c.homed(0, 1)[0]
}

// homed returns keys whose home is a node.
func (c *cluster) homed(home godwit.NodeID, n int) (keys []godwit.Key) {
	for k := godwit.Key(0); len(keys) < n; k++ {
		if c.homes.Home(k) == home {
			keys = append(keys, k)
		}
	}
	return keys
}

// uses has a worker of a node pull and push a key, and lets everything arrive.
func (c *cluster) uses(t *testing.T, n *testNode, k godwit.Key, pulls, pushes int) {
	t.Helper()
	one := make([]float32, c.model.Dim(k))
	for i := range pulls + pushes {
		r := &wire.Record{Kind: wire.Pull, Key: k, Op: 1}
		if i >= pulls {
			r.Kind, r.Vals = wire.Push, one
		}
		switch {
		case r.Kind == wire.Pull && n.Pull(k, one) != Elsewhere:
		case r.Kind == wire.Push && n.Push(k, one) != Elsewhere:
		default:
			n.Request(n, r)
			n.Missed(n, k, r.Kind == wire.Push, 1, 8)
		}
		c.drain(t)
	}
}

// drain delivers what is under way.
func (c *cluster) drain(t *testing.T) {
	t.Helper()
	for ps := c.busy(); len(ps) > 0; ps = c.busy() {
		if err := c.deliver(ps[0]); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range c.nodes {
		n.replies = nil
	}
}

func TestARelaxedKeyThatIsUsedAgainIsCopied(t *testing.T) {
	c, k := learning(t, 2, true)
	n := c.nodes[1]
	c.uses(t, n, k, 1, 1)
	if got := n.holding(k); got != absent {
		t.Fatalf("after two accesses the key is %v", got)
	}
	c.uses(t, n, k, 1, 1)
	if got := n.holding(k); !got.isReplica() {
		t.Errorf("after four accesses the key is %v", got)
	}
	if n.Stats.Learned != 1 || c.nodes[0].Stats.MovesOut != 0 {
		t.Errorf("%d copies were learned and %d keys moved, want 1 and 0", n.Stats.Learned, c.nodes[0].Stats.MovesOut)
	}
}

// Lateness widens the window of intents. Of what nobody announced, it says nothing.
func TestAnAccessThatWaitsForALearnedCopyIsNotLate(t *testing.T) {
	c, k := learning(t, 2, true)
	n := c.nodes[1]
	for n.holding(k) == absent {
		n.Missed(n, k, false, 1, 8)
	}
	n.Request(n, &wire.Record{Kind: wire.Pull, Key: k, Op: 1})
	if n.Stats.Waited != 1 || n.Stats.Late != 0 {
		t.Errorf("%d accesses waited and %d were late, want 1 and 0", n.Stats.Waited, n.Stats.Late)
	}
	c.drain(t)
}

// A policy may give the key itself to who wishes for a copy, or nothing. Either ends the wish.
func TestAWishEndsWhenTheKeyComesOrIsRefused(t *testing.T) {
	for _, x := range []struct {
		policy placement.Policy
		want   state
	}{{chosen{}, owner}, {placement.RelocateAll, absent}} {
		m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 4096, Dim: 1, Relaxed: true})
		if err != nil {
			t.Fatal(err)
		}
		c := newCluster(3, m, x.policy, true, Broken{})
		n, k := c.nodes[2], c.homed(0, 1)[0]
		for !n.learner.Has(k) {
			n.Missed(n, k, false, 1, 8)
		}
		c.drain(t)
		if got := n.holding(k); got != x.want || n.learner.Has(k) || n.Holding(k).Wanted {
			t.Errorf("under %s the key is %v, want %v; there is a wish: %v; it is wanted: %v", x.policy.Name(), got, x.want, n.learner.Has(k), n.Holding(k).Wanted)
		}
	}
}

func TestACopyThatNobodyUsesIsGivenUpAndMustBeEarnedTwice(t *testing.T) {
	c, k := learning(t, 2, true)
	home, n := c.nodes[0], c.nodes[1]
	accesses := func() (count int) {
		for n.holding(k) == absent && count < 100 {
			c.uses(t, n, k, 1, 0)
			count++
		}
		return count
	}
	changes := func() (count int) {
		for n.holding(k) != absent && count < 100 {
			c.uses(t, home, k, 0, 1)
			home.Round(home, true, false)
			c.drain(t)
			count++
		}
		return count
	}
	first := accesses()
	if got := changes(); got < 2 || got > 20 {
		t.Errorf("the copy stays for %d refreshes that nobody uses", got)
	}
	if second := accesses(); second < 2*first-1 || second == 100 {
		t.Errorf("the second copy took %d accesses, the first %d", second, first)
	}
	// One that is used stays.
	for range 100 {
		c.uses(t, home, k, 0, 1)
		n.Used(k, 1)
		home.Round(home, true, false)
		c.drain(t)
	}
	if got := n.holding(k); got != fresh {
		t.Errorf("a copy that is used is %v", got)
	}
}

func TestAKeyThatOneNodeChangesMovesThereAndOneThatSeveralDoStays(t *testing.T) {
	c, k := learning(t, 3, false)
	for range 8 {
		c.uses(t, c.nodes[1], k, 2, 2)
	}
	if got := c.nodes[1].holding(k); got != owner {
		t.Errorf("a key that only node 1 uses is %v there", got)
	}
	c, k = learning(t, 3, false)
	for range 200 {
		for _, n := range c.nodes {
			c.uses(t, n, k, 1, 1)
		}
	}
	if got := c.nodes[0].holding(k); got != owner || c.nodes[0].Stats.MovesOut > 0 {
		t.Errorf("a key that all use is %v at its home and moved %d times", got, c.nodes[0].Stats.MovesOut)
	}
	// An owner that uses it by itself keeps it, as one whose workers announced it does.
	c, k = learning(t, 2, false)
	c.nodes[0].Want(c.nodes[0], k)
	for range 50 {
		c.uses(t, c.nodes[1], k, 1, 1)
	}
	if got := c.nodes[0].holding(k); got != owner {
		t.Errorf("a key that is announced at its owner is %v there", got)
	}
	if n := c.nodes[1].Stats.Refused; n > 0 {
		t.Errorf("workers waited for the key %d times in vain", n)
	}
}

func TestAKeyThatIsOnlyReadOrOnlyWrittenStays(t *testing.T) {
	for _, x := range [][2]int{{1, 0}, {0, 1}} {
		c, k := learning(t, 2, false)
		for range 100 {
			c.uses(t, c.nodes[1], k, x[0], x[1])
		}
		if got := c.nodes[0].holding(k); got != owner {
			t.Errorf("after %v pulls and pushes in turn the key is %v at its home", x, got)
		}
	}
}

// The copies that a node learns are bounded: when it has too many, those go that are not used.
func TestCopiesThatAreLearnedAreBounded(t *testing.T) {
	c, _ := learning(t, 2, true)
	n := c.nodes[1]
	keys := c.homed(0, 3*wishes/2)
	for _, k := range keys {
		c.uses(t, n, k, 4, 0)
	}
	if got := n.learner.Wishes(); got > wishes || got < wishes/2 {
		t.Errorf("%d copies, want up to %d", got, wishes)
	}
	if _, _, replicas := n.Len(); replicas != n.learner.Wishes() {
		t.Errorf("%d replicas, %d wishes", replicas, n.learner.Wishes())
	}
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

// Of the copies that are learned, those that are used stay when others need the room.
func TestLearnedCopiesThatAreUsedWithstandOthers(t *testing.T) {
	c, _ := learning(t, 2, true)
	n := c.nodes[1]
	keys := c.homed(0, 3*wishes)
	used, others := keys[:10], keys[10:]
	for i, k := range append(used, others...) {
		c.uses(t, n, k, 4, 0)
		c.uses(t, n, used[i%len(used)], 0, 1)
	}
	for _, k := range used {
		if got := n.holding(k); !got.isReplica() {
			t.Errorf("key %d, which is used again and again, is %v", k, got)
		}
	}
	if n.Stats.Drops == 0 || n.learner.Wishes() > wishes {
		t.Errorf("%d copies were given up, %d are there", n.Stats.Drops, n.learner.Wishes())
	}
}
