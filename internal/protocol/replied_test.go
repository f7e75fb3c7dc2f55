package protocol

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// Replies that are taken together count, and say where keys are, as single ones do.
func TestRepliesThatAreTakenTogetherSayWhatSingleOnesDo(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 64, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(3, model, placement.Static, true, Broken{})
	s := c.nodes[0].Shard
	var keys []godwit.Key // with their home at node 1
	for k := range godwit.Key(64) {
		if c.homes.Home(k) == 1 {
			keys = append(keys, k)
		}
	}
	if len(keys) < 4 {
		t.Fatalf("%d keys have their home at node 1", len(keys))
	}
	pass := func(want godwit.NodeID) {
		t.Helper()
		for _, k := range keys {
			if to, ok := s.Pass(k, false); !ok || to != want {
				t.Errorf("a request for key %d goes to node %d, %v; want %d", k, to, ok, want)
			}
		}
	}
	under := func() (n uint32) {
		for _, c := range s.slots {
			n += c.remote
		}
		return n
	}
	for _, x := range []struct {
		from, before godwit.NodeID
		home         bool
	}{{1, 1, true}, {2, 1, false}, {1, 2, true}, {1, 1, false}} {
		pass(x.before)
		if under() != uint32(len(keys)) {
			t.Fatalf("%d requests are under way of %d", under(), len(keys))
		}
		s.RepliedEach(x.from, keys, x.home)
		if under() != 0 || s.Stats.Stale != 0 {
			t.Fatalf("replies from node %d: %d requests are left, %d replies were to none", x.from, under(), s.Stats.Stale)
		}
	}
	pass(1)
	s.RepliedEach(1, keys, true)
	s.RepliedEach(1, keys, true)
	if under() != 0 || s.Stats.Stale != uint64(len(keys)) {
		t.Errorf("after as many replies again: %d requests are left, %d replies were to none", under(), s.Stats.Stale)
	}
}

// A request that says that this node has sent it, which it has not, does not count as answered.
func TestARequestThatNobodyHereSentCountsAsNone(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10, Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(2, m, placement.Adaptive, false, Broken{})
	h := c.nodes[c.homes.Home(0)]
	stale := h.Stats.Stale
	if err := h.Step(h, 1-h.id, &wire.Record{Kind: wire.Pull, Key: 0, Origin: h.id, Op: 77, Hops: 1}); err != nil {
		t.Fatal(err)
	}
	if err := h.Resting(); err != nil || h.Stats.Stale != stale+1 {
		t.Errorf("%v; %d records count as stale, want %d", err, h.Stats.Stale, stale+1)
	}
}
