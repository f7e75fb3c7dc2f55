package protocol

import (
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

func TestARecordThatBreaksTheProtocolIsAnErrorAndChangesNothing(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 100, Dim: 2, Rule: counting{}})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(2, model, placement.Adaptive, true, Broken{})
	n := c.nodes[0]
	var here, there godwit.Key // homes of the two keys
	for k := godwit.Key(0); k < 100; k++ {
		if c.homes.Home(k) == 0 {
			here = k
		} else {
			there = k
		}
	}
	n.Push(here, []float32{1, 1})
	for _, x := range []struct {
		r    wire.Record
		want string
	}{
		{wire.Record{Kind: wire.Pull, Key: 100}, "the model has keys 0 … 99"},
		{wire.Record{Kind: wire.Push, Key: here, Origin: 1, Op: 1, Vals: make([]float32, 3)}, "with 3 floats, want 2"},
		{wire.Record{Kind: wire.Set, Key: here, Origin: 1, Op: 1}, "with 0 floats, want 2"},
		{wire.Record{Kind: wire.Delta, Key: here, Origin: 1, Seq: 1, Vals: make([]float32, 2)}, "with 2 floats, want 3"},
		{wire.Record{Kind: wire.End, Key: here, Origin: 1, Seq: 1, Vals: make([]float32, 2)}, "with 2 floats, want 3"},
		{wire.Record{Kind: wire.Interest, Key: here, Origin: 1, Seq: 1, Vals: make([]float32, 2)}, "with 2 floats, want 0"},
		{wire.Record{Kind: wire.Transfer, Key: here, Epoch: 1, Vals: make([]float32, 3)}, "is owner here since epoch 0"},
		{wire.Record{Kind: wire.Claim, Key: there, Epoch: 1, Origin: 1}, "its home is node 1"},
		{wire.Record{Kind: wire.Claim, Key: here, Epoch: 1, Origin: 1}, "was not handed over"},
		{wire.Record{Kind: wire.Release, Key: here, Epoch: 1, Origin: 1}, "its home is node 0"},
		{wire.Record{Kind: wire.SyncMark}, "which no key takes"},
		{wire.Record{Kind: 99}, "which no key takes"},
	} {
		err := n.Step(n, 1, &x.r)
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "node 1") {
			t.Errorf("%v of key %d: error %v, want one of node 1 that says %q", x.r.Kind, x.r.Key, err, x.want)
		}
	}
	if err := c.check(); err != nil {
		t.Error(err)
	}
	if got := n.row(here); got[0] != 1 || got[2] != 1 {
		t.Errorf("the row is %v", got)
	}
}

// Late answers of former owners and to former copies are ordinary.
func TestAnAnswerThatNobodyWaitsForIsIgnored(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(2, model, placement.Adaptive, true, Broken{})
	n := c.nodes[0]
	key := godwit.Key(0)
	for c.homes.Home(key) != 1 {
		key++
	}
	for _, kind := range []wire.Kind{wire.Refresh, wire.Ack, wire.Dropped, wire.Refuse, wire.Release, wire.Drained, wire.Done} {
		r := wire.Record{Kind: kind, Key: key, Epoch: 1, Version: 1, Seq: 1}
		if kind == wire.Refresh {
			r.Vals = []float32{1}
		}
		if err := n.Step(n, 1, &r); err != nil {
			t.Errorf("%v: %v", kind, err)
		}
	}
	if n.Stats.Stale != 7 {
		t.Errorf("%d records were ignored, want 7", n.Stats.Stale)
	}
	if err := c.check(); err != nil {
		t.Error(err)
	}
}
