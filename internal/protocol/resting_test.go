package protocol

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// A holder that rests hears at once that its update was added, and nothing else before it asks for it. A Refresh without that update, which
// comes late by another way, does not take it away again (R3).
func TestAHolderThatRestsHearsThatItsUpdatesWereAdded(t *testing.T) {
	c, home, away, sent := waiting(t, placement.Adaptive)
	rests := true
	c.rests = func(n godwit.NodeID) bool { return rests && n == away.id }
	home.Push(0, []float32{10, 20})
	home.Round(home, false, false)
	away.Push(0, []float32{1, 2})
	away.Round(away, false, false)
	deliverAll(t, c)
	if sent[wire.Delta] != 1 || sent[wire.Ack] != 1 || sent[wire.Refresh] != 0 {
		t.Fatalf("sent %v, want an update and an acknowledgement", sent)
	}
	d := away.replicaAt(0)
	if d == nil || away.holding(0) != fresh || d.acked == 0 {
		t.Fatalf("the copy is %v", away.holding(0))
	}
	ref, _ := away.st.Find(0)
	late := wire.Record{Kind: wire.Refresh, Key: 0, Version: away.st.Header(ref).Version, Seq: d.acked - 1, Vals: []float32{0, 0}}
	if err := away.Step(away, home.id, &late); err != nil {
		t.Fatal(err)
	}
	v := make([]float32, 2)
	if away.Pull(0, v); v[0] != 1 || v[1] != 2 {
		t.Errorf("the copy has %v, want its own update", v)
	}

	home.Round(home, true, false) // as all is asked for
	deliverAll(t, c)
	if away.Pull(0, v); v[0] != 11 || v[1] != 22 {
		t.Errorf("the copy has %v, want 11 and 22", v)
	}
	rests = false
	calm(t, c)
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

// An update that came before its holder rested is acknowledged by the next round, and the row stays until it is asked for.
func TestAnUpdateOfAHolderThatRestsNowIsAcknowledgedWithoutTheRow(t *testing.T) {
	c, home, away, sent := waiting(t, placement.Adaptive)
	away.Push(0, []float32{1, 2})
	away.Round(away, false, false)
	deliverAll(t, c)
	home.Push(0, []float32{10, 20})
	c.rests = func(n godwit.NodeID) bool { return n == away.id }
	home.Round(home, false, false)
	deliverAll(t, c)
	if sent[wire.Delta] != 1 || sent[wire.Ack] != 1 || sent[wire.Refresh] != 0 || away.holding(0) != fresh {
		t.Fatalf("sent %v, and the copy is %v; want an acknowledgement of the update", sent, away.holding(0))
	}
	home.Round(home, true, false) // as all is asked for
	deliverAll(t, c)
	v := make([]float32, 2)
	if away.Pull(0, v); v[0] != 11 || v[1] != 22 || sent[wire.Refresh] != 1 {
		t.Errorf("the copy has %v after %d refreshes, want 11 and 22 after one", v, sent[wire.Refresh])
	}
	c.rests = nil
	calm(t, c)
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

// waiting returns a cluster in which both nodes want key 0, which is home at the first node returned and copied to the other, and
// counts the records of some kinds that are sent from then on.
func waiting(t *testing.T, policy placement.Policy) (c *cluster, home, away *testNode, sent map[wire.Kind]int) {
	t.Helper()
	return waitingIn(t, policy, godwit.Table{Name: "t", Rows: 10, Dim: 2})
}

// waitingIn is waiting of a table.
func waitingIn(t *testing.T, policy placement.Policy, table godwit.Table) (c *cluster, home, away *testNode, sent map[wire.Kind]int) {
	t.Helper()
	m, err := godwit.NewModel(table)
	if err != nil {
		t.Fatal(err)
	}
	c = newCluster(2, m, policy, false, Broken{})
	home, away = c.nodes[c.homes.Home(0)], c.nodes[1-c.homes.Home(0)]
	home.Want(home, 0)
	away.Want(away, 0)
	calm(t, c)
	if away.holding(0) != fresh {
		t.Fatalf("the key is %v: the test is vacuous", away.holding(0))
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

// A round that has to bring copies of tables with a bound up to date does so also for who rests, and lacks something since an earlier round.
func TestARoundThatPressesRefreshesBoundedCopiesOfWhoRests(t *testing.T) {
	c, home, away, _ := waitingIn(t, placement.Adaptive, godwit.Table{Name: "t", Rows: 10, Dim: 2, Staleness: godwit.Within(0)})
	c.rests = func(n godwit.NodeID) bool { return n == away.id }
	home.Push(0, []float32{10, 20})
	home.Round(home, false, false)
	deliverAll(t, c)
	v := make([]float32, 2)
	if away.Pull(0, v); v[0] != 0 {
		t.Fatalf("the copy has %v after a round that does not press: the test is vacuous", v)
	}
	home.Round(home, false, true)
	deliverAll(t, c)
	if away.Pull(0, v); v[0] != 10 || v[1] != 20 {
		t.Errorf("the copy has %v after a round that presses, want 10 and 20", v)
	}
}

// A round that presses leaves the rows of other tables alone that wait until who rests asks for them, however many there are.
func TestARoundThatPressesLeavesOtherTablesToWhoRests(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "free", Rows: 100, Dim: 2}, godwit.Table{Name: "bounded", Rows: 100, Dim: 2, Staleness: godwit.Within(0)})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(2, m, placement.Adaptive, false, Broken{})
	home, away := c.nodes[0], c.nodes[1]
	var keys [2]godwit.Key
	for table := range keys {
		keys[table] = m.Key(table, 0)
		for c.homes.Home(keys[table]) != home.id {
			keys[table]++
		}
		home.Want(home, keys[table])
		away.Want(away, keys[table])
	}
	calm(t, c)
	c.rests = func(n godwit.NodeID) bool { return n == away.id }
	for _, k := range keys {
		home.Push(k, []float32{10, 20})
	}
	home.Round(home, false, false)
	deliverAll(t, c)
	if n := [2]int{len(home.parked[0]), len(home.parked[1])}; n != [2]int{1, 1} {
		t.Fatalf("%v rows of both tables wait, want one of each: the test is vacuous", n)
	}
	ref, _ := home.st.Find(keys[0])
	asked := 0
	rests := c.rests
	c.rests = func(n godwit.NodeID) bool { asked++; return rests(n) }
	home.Round(home, false, true)
	if asked != 0 || len(home.parked[0]) != 1 || len(home.parked[1]) != 0 || home.side(home.st.Header(ref)).main().changed {
		t.Errorf("it asks %d times whether a holder rests, and %d and %d rows wait", asked, len(home.parked[0]), len(home.parked[1]))
	}
	deliverAll(t, c)
	v := make([]float32, 2)
	for table, want := range []float32{0, 10} {
		if away.Pull(keys[table], v); v[0] != want {
			t.Errorf("the copy of table %d has %v, want %v", table, v[0], want)
		}
	}
	home.Round(home, true, false) // as all is asked for
	deliverAll(t, c)
	if away.Pull(keys[0], v); v[0] != 10 || home.Parked() {
		t.Errorf("the copy has %v after a round for all, want 10", v[0])
	}
	c.rests = nil
	calm(t, c)
	if err := c.check(); err != nil {
		t.Error(err)
	}
}
