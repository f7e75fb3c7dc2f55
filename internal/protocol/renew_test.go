package protocol

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// waiting returns a cluster in which both nodes want key 0, which is home at the first node returned and copied to the other, and
// counts the records of some kinds that are sent from then on.
func waiting(t *testing.T, policy placement.Policy) (c *cluster, home, away *testNode, sent map[wire.Kind]int) {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10, Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	c = newCluster(2, m, policy, false, Broken{})
	home, away = c.nodes[c.homes.Home(0)], c.nodes[1-c.homes.Home(0)]
	home.Want(home, 0)
	away.Want(away, 0)
	calm(t, c)
	if away.holding(0) != fresh || away.lead == 0 {
		t.Fatalf("the key is %v, and took %d ns to come: the test is vacuous", away.holding(0), away.lead)
	}
	sent = map[wire.Kind]int{}
	c.sent = func(_, _ godwit.NodeID, r *wire.Record) { sent[r.Kind]++ }
	return c, home, away, sent
}

// deliverAll hands over all records that are under way, without a round.
func deliverAll(t *testing.T, c *cluster) {
	t.Helper()
	for ps := c.busy(); len(ps) > 0; ps = c.busy() {
		if err := c.deliver(ps[0]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACopyThatWaitedIsRenewedBeforeItsUse(t *testing.T) {
	c, home, away, sent := waiting(t, placement.Adaptive)
	home.Push(0, []float32{1, 2})
	c.now += 2 * oldAfter * away.lead
	away.Want(away, 0)
	deliverAll(t, c)
	v := make([]float32, 2)
	if away.Pull(0, v); v[0] != 1 || v[1] != 2 {
		t.Errorf("the copy has %v, want what the owner has", v)
	}
	if sent[wire.Renew] != 1 || sent[wire.Refresh] != 1 || away.Stats.Renewals != 1 {
		t.Errorf("sent %v, and counted %d renewals; want one of each", sent, away.Stats.Renewals)
	}

	c.now += 2 * oldAfter * away.lead // nothing new: the owner says nothing, and is not asked again at once
	away.Want(away, 0)
	deliverAll(t, c)
	away.Want(away, 0)
	deliverAll(t, c)
	if sent[wire.Renew] != 2 || sent[wire.Refresh] != 1 || sent[wire.Ack] != 0 {
		t.Errorf("sent %v, want a second question alone", sent)
	}
}

func TestACopyIsNotRenewedWithoutNeed(t *testing.T) {
	t.Run("it is young", func(t *testing.T) {
		c, home, away, sent := waiting(t, placement.Adaptive)
		away.lead = 1 << 40
		home.Push(0, []float32{1, 2})
		away.Want(away, 0)
		deliverAll(t, c)
		if len(sent) != 0 {
			t.Errorf("sent %v", sent)
		}
	})
	t.Run("the rule is that of a paper", func(t *testing.T) {
		c, home, away, sent := waiting(t, placement.AdaPM)
		home.Push(0, []float32{1, 2})
		c.now += 1 << 30
		away.Want(away, 0)
		deliverAll(t, c)
		if len(sent) != 0 {
			t.Errorf("sent %v", sent)
		}
	})
}

// A question shows that the copy is used: rounds refresh it at once again. Where there is no room for the row, a round brings it.
func TestACopyThatIsRenewedCountsAsUsed(t *testing.T) {
	c, home, away, sent := waiting(t, placement.Adaptive)
	ref, _ := home.st.Find(0)
	x := home.holder(home.main(home.st.Header(ref)), away.id)
	x.pace = 7<<idleBits | maxIdle // seven rounds are to pass it by
	full := true
	c.room = func() bool { return !full }
	home.Push(0, []float32{1, 2})
	c.now += 2 * oldAfter * away.lead
	away.Want(away, 0)
	deliverAll(t, c)
	if sent[wire.Renew] != 1 || sent[wire.Refresh] != 0 {
		t.Errorf("sent %v, want a question and no row where there is no room", sent)
	}
	full = false
	home.Round(home, false, false)
	deliverAll(t, c)
	v := make([]float32, 2)
	if away.Pull(0, v); sent[wire.Refresh] != 1 || v[0] != 1 {
		t.Errorf("a round sends %v, and the copy has %v", sent, v)
	}
}

// A copy that is pushed to keeps what it has not sent when it is renewed.
func TestACopyThatHasUpdatesIsRenewedUnderThem(t *testing.T) {
	c, home, away, _ := waiting(t, placement.Adaptive)
	home.Push(0, []float32{1, 2})
	away.Push(0, []float32{10, 20})
	c.now += 2 * oldAfter * away.lead
	away.Want(away, 0)
	deliverAll(t, c)
	v := make([]float32, 2)
	if away.Pull(0, v); v[0] != 11 || v[1] != 22 {
		t.Errorf("the copy has %v, want 11 and 22", v)
	}
	calm(t, c)
	if home.Pull(0, v); v[0] != 11 || v[1] != 22 {
		t.Errorf("the owner has %v, want 11 and 22", v)
	}
}

// A question that comes when the copy is gone does nothing; one that comes to a node to which the key is moving, or that
// handed it over, neither.
func TestAQuestionOfACopyThatIsGoneIsIgnored(t *testing.T) {
	c, home, away, _ := waiting(t, placement.Adaptive)
	away.Unwant(away, 0)
	calm(t, c)
	if away.holding(0) != absent {
		t.Fatalf("the key is %v: the test is vacuous", away.holding(0))
	}
	stale := home.Stats.Stale
	if err := home.Step(home, away.id, &wire.Record{Kind: wire.Renew, Key: 0, Origin: away.id, Hops: 1}); err != nil {
		t.Fatal(err)
	}
	if len(c.busy()) > 0 || home.Stats.Stale != stale+1 {
		t.Errorf("%v are under way, and %d records were ignored", c.busy(), home.Stats.Stale-stale)
	}
	away.Want(away, 0) // asks for a copy
	home.Unwant(home, 0)
	deliverAll(t, c)
	away.Push(0, []float32{1, 1}) // with this the key moves
	away.Round(away, true, false)
	for away.holding(0) != tentative {
		deliverFirst(t, c)
	}
	if err := away.Step(away, home.id, &wire.Record{Kind: wire.Renew, Key: 0, Origin: home.id, Hops: 1, Coming: true}); err != nil {
		t.Fatal(err)
	}
	calm(t, c)
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

func deliverFirst(t *testing.T, c *cluster) {
	t.Helper()
	ps := c.busy()
	if len(ps) == 0 {
		t.Fatal("nothing is under way")
	}
	if err := c.deliver(ps[0]); err != nil {
		t.Fatal(err)
	}
}
