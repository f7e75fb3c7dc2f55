package protocol

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// A node has as many idle replicas as main copies, or as fit into what they may take in any case; beyond that, replicas go when
// nobody wants them.
func TestIdleReplicasAreBounded(t *testing.T) {
	const rows, others, dim = 200, 30, 2
	for _, x := range []struct{ bytes, want int }{
		{-1, 0},
		{1, others},
		{50 * 2 * 4 * dim, 50},
		{0, rows},
	} {
		m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 4 * rows, Dim: dim})
		if err != nil {
			t.Fatal(err)
		}
		c := newCluster(2, m, placement.Adaptive, false, Broken{})
		home, away := c.nodes[0], c.nodes[1]
		away.cfg.Idle = x.bytes
		var keys []godwit.Key
		made := 0
		for k := godwit.Key(0); m.Has(k); k++ {
			switch {
			case c.homes.Home(k) == away.id && made < others:
				made++
				away.Push(k, make([]float32, dim))
			case c.homes.Home(k) == home.id && len(keys) < rows:
				keys = append(keys, k)
				home.Want(home, k)
				away.Want(away, k)
			}
		}
		calm(t, c)
		if _, _, n := away.Len(); n != rows || made != others {
			t.Fatalf("%d replicas and %d other rows: the test is vacuous", n, made)
		}
		for _, k := range keys {
			away.Unwant(away, k)
		}
		calm(t, c)
		if _, _, n := away.Len(); n != x.want {
			t.Errorf("with %d bytes, %d replicas are idle, want %d", x.bytes, n, x.want)
		}
		for _, k := range keys {
			away.Want(away, k)
		}
		calm(t, c)
		if _, _, n := away.Len(); n != rows {
			t.Errorf("with %d bytes, %d replicas are here when all are wanted again, want %d", x.bytes, n, rows)
		}
		if away.idle != 0 {
			t.Errorf("with %d bytes, %d replicas count as idle when all are wanted", x.bytes, away.idle)
		}
	}
}

// An idle replica goes when it was refreshed for long and not used. A push is a use, and so is an intent.
func TestAnIdleReplicaGoesWhenItIsRefreshedInVain(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(2, m, placement.Adaptive, false, Broken{}).idling()
	home, away := c.nodes[c.homes.Home(0)], c.nodes[1-c.homes.Home(0)]
	home.Want(home, 0)
	away.Want(away, 0)
	calm(t, c)
	away.Unwant(away, 0)
	refreshed := func() (times int) {
		for away.holding(0).isReplica() && times < 100 {
			if times == mostUnused/2 {
				break
			}
			home.Push(0, []float32{1})
			before := away.Stats.Copies + home.Stats.Refreshes
			for away.Stats.Copies+home.Stats.Refreshes == before {
				home.Round(home, false, false)
			}
			calm(t, c)
			times++
		}
		return times
	}
	for i := range 6 { // with a use between, it stays
		if n := refreshed(); n != mostUnused/2 {
			t.Fatalf("the replica is %v after %d refreshes", away.holding(0), n)
		}
		if i%2 == 0 {
			away.Push(0, []float32{1})
		} else {
			away.Want(away, 0)
			away.Unwant(away, 0)
		}
		calm(t, c)
	}
	n := refreshed() + refreshed()
	if away.holding(0) != absent || n != mostUnused {
		t.Errorf("the replica is %v after %d refreshes without a use, want that it goes after %d", away.holding(0), n, mostUnused)
	}
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

// An intent that was refused ends as others do. Its end is no end of an idle replica, which would count for ever.
func TestTheEndOfARefusedIntentIsNoneOfAnIdleReplica(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10, Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(2, m, placement.Adaptive, false, Broken{}).idling()
	h, a := c.nodes[c.homes.Home(0)], c.nodes[1-c.homes.Home(0)]
	a.Want(a, 0)
	calm(t, c)
	a.Push(0, []float32{1, 1})
	calm(t, c)
	a.Unwant(a, 0)
	calm(t, c)
	if a.holding(0) != owner {
		t.Fatalf("the key is %v where it was used: the test is vacuous", a.holding(0))
	}
	a.PushAt(nil, 0, []float32{1, 1}, OddMark) // a cut is made, for which the key stays
	h.Want(h, 0)
	calm(t, c)
	if h.holding(0) != absent {
		t.Fatalf("the key is %v though a cut is made: the test is vacuous", h.holding(0))
	}
	for _, n := range c.nodes {
		n.SealCut(false)
		n.Unsaved(func(godwit.Key) {})
		for _, k := range n.Kept(nil) {
			n.Save(k, nil)
		}
		n.SavedCut()
		n.EndCut()
	}
	a.Want(a, 0)
	h.Want(h, 0)
	calm(t, c)
	h.Unwant(h, 0)
	calm(t, c)
	if !h.Idle(0) || h.idle != 1 {
		t.Fatalf("the replica is idle: %v, %d are: the test is vacuous", h.Idle(0), h.idle)
	}
	h.Unwant(h, 0) // of the intent that was refused
	calm(t, c)
	if !h.Idle(0) || h.idle != 1 {
		t.Errorf("the replica is idle: %v, and %d count as such", h.Idle(0), h.idle)
	}
	h.Want(h, 0)
	calm(t, c)
	if h.idle != 0 {
		t.Errorf("%d replicas count as idle, and none is", h.idle)
	}
}
