package protocol

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol/directory"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

// joins are ways to keep the largest, all but the first of them wrong.
type (
	mergesByOverwriting struct{ optim.Max }
	mergesByAdding      struct{ optim.Max }
	packsDifferences    struct{ optim.Max }
	mergesOnlyTheFirst  struct{ optim.Max }
)

func (mergesByOverwriting) Merge(v, _, dv []float32) { copy(v, dv) }
func (mergesByAdding) Merge(v, _, dv []float32) {
	for i, x := range dv {
		if x > 0 {
			v[i] += x
		}
	}
}
func (packsDifferences) Pack(_, _, _ []float32)     {}
func (mergesOnlyTheFirst) Merge(v, s, dv []float32) { optim.Max{}.Merge(v[:1], s, dv[:1]) }

func TestStormsNoticeAJoinThatIsNone(t *testing.T) {
	for _, r := range []godwit.Rule{mergesByOverwriting{}, mergesByAdding{}, packsDifferences{}, mergesOnlyTheFirst{}} {
		var err error
		w := weather{policy: placement.Adaptive, nodes: 4, join: r}
		for seed := uint64(1); seed <= 100 && err == nil; seed++ {
			err = w.storm(seed)
		}
		if err == nil {
			t.Errorf("no storm notices %T", r)
		}
		t.Logf("%T: %.200v", r, err)
	}
}

// What was pushed to a row before it was set is gone, also at a replica that
// hears of the set only after it has pushed to another coordinate.
func TestAJoinDoesNotBringBackWhatWasOverwritten(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 2, Rule: optim.Max{}})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(2, model, placement.ReplicateAll, false, Broken{})
	home := c.nodes[c.homes.Home(0)]
	away := c.nodes[1-c.homes.Home(0)]
	rng := rand.New(rand.NewPCG(1, 1))
	settle := func() {
		t.Helper()
		if err := c.settle(rng, 1000); err != nil {
			t.Fatal(err)
		}
	}
	away.Hold(away, 0)
	home.Push(0, []float32{3, 1})
	settle()
	if p := away.Push(0, []float32{2, 5}); p != AtReplica {
		t.Fatalf("pushed at %v: the test is vacuous", p)
	}
	home.Request(home, &wire.Record{Kind: wire.Set, Op: 1, Vals: []float32{0, 0}})
	settle()
	for _, n := range c.nodes {
		if got := n.row(0); !slices.Equal(got, []float32{0, 5}) {
			t.Errorf("node %d has %v, want [0 5]: the set, and the push that came after it", n.id, got)
		}
	}
}

// A replica of a row (value, count of pushes) gets refreshes with and without
// the count, which contain its update in flight or do not.
func TestARefreshWithoutStateKeepsWhatTheReplicaCounted(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 1, Rule: turned{}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := &Config{Self: 0, Model: model, Policy: placement.Adaptive, Homes: directory.NewHomes(1, []godwit.NodeID{1})}
	if err := cfg.Prepare(); err != nil {
		t.Fatal(err)
	}
	s, err := NewShard(cfg, store.HeapAlloc)
	if err != nil {
		t.Fatal(err)
	}
	s.Want(nowhere{}, 0)
	interest := s.seq
	version := godwit.Version(0)
	refresh := func(seq uint64, vals ...float32) {
		t.Helper()
		version++
		if err := s.Step(nowhere{}, 1, &wire.Record{Kind: wire.Refresh, Version: version, Seq: seq, Vals: vals}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when string, row ...float32) {
		t.Helper()
		ref, _ := s.st.Find(0)
		if got := s.st.Floats(ref); !slices.Equal(got, row) {
			t.Errorf("%s: the row is %v, want %v", when, got, row)
		}
	}
	refresh(interest, 100, 7)
	want("set up", 100, 7)
	s.Push(0, []float32{1})
	s.Round(nowhere{}, false, false)
	flight := s.seq
	s.Push(0, []float32{2})
	want("one push in flight, one not sent", 103, 9)
	refresh(interest, 200)
	want("a value without either", 203, 9)
	refresh(interest, 300, 20)
	want("a whole row without either", 303, 22)
	refresh(flight, 401)
	want("a value with the one in flight", 403, 22)
	s.Round(nowhere{}, false, false)
	refresh(s.seq, 503)
	want("a value with both", 503, 22)
	refresh(s.seq, 603, 40)
	want("a whole row with both", 603, 40)
}

func TestTheFirstRefreshOfAReplicaMustBringItsState(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 1, Rule: turned{}})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(2, model, placement.Adaptive, false, Broken{})
	n := c.nodes[1-c.homes.Home(0)]
	n.Want(n, 0)
	if err := n.Step(n, c.homes.Home(0), &wire.Record{Kind: wire.Refresh, Version: 1, Seq: n.seq, Vals: []float32{1}}); err == nil {
		t.Error("a refresh of a value was taken for a row")
	}
}
