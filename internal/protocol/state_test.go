package protocol

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

// copied is a key of a table with AdaGrad (a value, a sum of squares) that has a
// replica, which has the whole row.
func copied(t *testing.T) (c *cluster, k godwit.Key, main, copy *testNode) {
	t.Helper()
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 1, Rule: optim.AdaGrad{LR: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	c = newCluster(2, model, placement.Adaptive, false, Broken{})
	main, copy = c.nodes[c.homes.Home(k)], c.nodes[1-c.homes.Home(k)]
	main.Want(main, k)
	main.Push(k, []float32{1})
	copy.Want(copy, k)
	rest(t, c)
	if !copy.holding(k).isReplica() {
		t.Fatalf("the key is %v, want a replica: the test is vacuous", copy.holding(k))
	}
	return c, k, main, copy
}

func rest(t *testing.T, c *cluster) {
	t.Helper()
	if err := c.settle(rand.New(rand.NewPCG(1, 1)), 1000); err != nil {
		t.Fatal(err)
	}
}

// Refreshes may leave a rule's state out, but a replica's is never far behind: its
// version is at most half as large again as that of the state.
func TestTheStateOfAReplicaIsNeverFarBehind(t *testing.T) {
	c, k, main, copy := copied(t)
	lagged := false
	for range 200 {
		main.Push(k, []float32{1})
		rest(t, c)
		is, there := copy.row(k)[1], main.row(k)[1]
		if there > is+is/stateAge+1 {
			t.Fatalf("the sum of squares is %v at the owner and %v at the replica", there, is)
		}
		lagged = lagged || there > is
	}
	if !lagged {
		t.Error("every refresh brought the state: the test is vacuous")
	}
}

// A Set resets the state of a rule, at the replicas too: with the first refresh that
// has its value.
func TestASetResetsTheStateAtReplicas(t *testing.T) {
	c, k, main, copy := copied(t)
	for range 100 {
		main.Push(k, []float32{1})
		rest(t, c)
	}
	begin := make([]float32, 2)
	main.begin(0, begin)
	if copy.row(k)[1] < begin[1]+10 {
		t.Fatalf("the replica's row is %v: the test is vacuous", copy.row(k))
	}
	main.Request(main, &wire.Record{Kind: wire.Set, Key: k, Op: 1, Vals: []float32{7}})
	rest(t, c)
	for _, n := range c.nodes {
		if row := n.row(k); row[0] != 7 || row[1] != begin[1] {
			t.Errorf("node %d has %v after the set, want value 7 and state %v", n.id, row, begin[1])
		}
	}
}

// The row that was handed over stays until the release of that move. The one that
// brought the row here is released at the node before.
func TestAFrozenRowOutlastsTheReleaseOfTheMoveBefore(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(3, model, placement.RelocateAll, false, Broken{})
	k, home := godwit.Key(0), c.homes.Home(0)
	old, next := c.nodes[(home+1)%3], c.nodes[(home+2)%3]
	old.Want(old, k)
	rest(t, c)
	next.Want(next, k)
	for _, p := range [][2]godwit.NodeID{{next.id, home}, {home, old.id}} {
		if err := c.deliver(p); err != nil {
			t.Fatal(err)
		}
	}
	if old.holding(k) != frozen {
		t.Fatalf("the key is %v, want frozen: the test is vacuous", old.holding(k))
	}
	for epoch := range godwit.Epoch(2) {
		if err := old.Step(old, home, &wire.Record{Kind: wire.Release, Key: k, Epoch: epoch, Origin: old.id}); err != nil {
			t.Fatal(err)
		}
		if old.holding(k) != frozen {
			t.Fatalf("the row is %v after the release of epoch %d, want frozen", old.holding(k), epoch)
		}
	}
	rest(t, c)
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

func TestAShardOfTooManyLengthsOfRowsIsAnError(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg := *newCluster(1, model, placement.Static, false, Broken{}).nodes[0].cfg
	cfg.rowLens = make([]int, store.MaxClasses+1)
	if s, err := NewShard(&cfg, store.HeapAlloc); err == nil || s != nil {
		t.Errorf("a shard, and error %v", err)
	}
}

// Only a main copy is restored, and read as a row to be kept: at a node with a replica nothing is written, and there is no such row.
func TestOnlyAMainCopyIsRestored(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 8, Dim: 2, Rule: optim.AdaGrad{LR: 1}})
	if err != nil {
		t.Fatal(err)
	}
	c, home, away := pair(t, m, placement.ReplicateAll)
	home.Push(0, []float32{1, 2})
	calm(t, c)
	before := slices.Clone(away.row(0))
	if away.Restore(0, 0, []float32{7, 7, 7, 7}, true) || !slices.Equal(away.row(0), before) {
		t.Errorf("a replica is restored: it was %v and is %v", before, away.row(0))
	}
	if row, here := away.Row(0, nil); here {
		t.Errorf("a replica is read as %v", row)
	}
	want := []float32{7, 8, 9, 10}
	if !home.Restore(0, 0, want, true) {
		t.Error("the main copy is not restored")
	}
	calm(t, c)
	if row, here := home.Row(0, nil); !here || !slices.Equal(row, want) || !slices.Equal(away.row(0), want) {
		t.Errorf("the main copy is %v, %v, the replica %v, want %v", row, here, away.row(0), want)
	}
}
