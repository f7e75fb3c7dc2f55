package protocol

import (
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol/directory"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// nowhere is an Out for shards that are only filled.
type nowhere struct{}

func (nowhere) Send(godwit.NodeID, *wire.Record) {}
func (nowhere) Room(godwit.NodeID) bool          { return true }
func (nowhere) Takes(godwit.NodeID) bool         { return true }
func (nowhere) Strained(godwit.NodeID) bool      { return false }
func (nowhere) Rooms() bool                      { return true }
func (nowhere) Crowded(godwit.NodeID) bool       { return false }
func (nowhere) Rests(godwit.NodeID) bool         { return false }
func (nowhere) Ask(godwit.NodeID, int) bool      { return true }
func (nowhere) Got(godwit.NodeID, int)           {}
func (nowhere) Now() int64                       { return 0 }

// filled returns a node's shards with all keys of a model owned or replicated,
// and the bytes that the rows, the index and the sides take.
func filled(t *testing.T, keys uint64, dim int, shift uint, replicas bool) (bytes int) {
	t.Helper()
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: keys, Dim: dim})
	if err != nil {
		t.Fatal(err)
	}
	self, other := godwit.NodeID(0), godwit.NodeID(1)
	home := self
	if replicas {
		home = other
	}
	cfg := &Config{Self: self, Model: model, Policy: placement.Adaptive,
		Homes: directory.NewHomes(keys, []godwit.NodeID{home}), Shift: shift}
	if err := cfg.Prepare(); err != nil {
		t.Fatal(err)
	}
	row := make([]float32, dim)
	for i := range 1 << shift {
		s, err := NewShard(cfg, store.HeapAlloc)
		if err != nil {
			t.Fatal(err)
		}
		for k := godwit.Key(i); uint64(k) < keys; k += 1 << shift {
			if !replicas {
				s.Push(k, row)
				continue
			}
			s.Want(nowhere{}, k)
			if err := s.Step(nowhere{}, other, &wire.Record{Kind: wire.Refresh, Key: k, Version: 1, Seq: s.seq, Vals: row}); err != nil {
				t.Fatal(err)
			}
		}
		if rows, owned, copies := s.Len(); rows != owned+copies || replicas != (copies > 0) {
			t.Fatalf("%d rows, %d owned, %d replicas", rows, owned, copies)
		}
		bytes += s.Memory().Bytes()
	}
	return bytes
}

// An owned key costs at most 32 bytes over its value, and of long values one
// percent for the chunks that shards have begun. A replica costs a second row
// and what goes on with it.
func TestAnOwnedKeyCosts32BytesOverItsValue(t *testing.T) {
	if testing.Short() {
		t.Skip("fills shards with a million keys")
	}
	for _, dim := range []int{4, 100} {
		for _, keys := range []uint64{1_000_000, 1_400_000} {
			over := float64(filled(t, keys, dim, 10, false))/float64(keys) - float64(4*dim)
			t.Logf("dim %d, %d keys owned: %.1f bytes over the value", dim, keys, over)
			if most := 32 + 0.01*float64(4*dim); over > most {
				t.Errorf("dim %d, %d keys: an owned key costs %.1f bytes over its value, want at most %.1f", dim, keys, over, most)
			}
		}
		const keys = 100_000
		over := float64(filled(t, keys, dim, 10, true))/keys - float64(2*4*dim)
		t.Logf("dim %d, %d keys replicated: %.1f bytes over the two copies", dim, keys, over)
		if most := float64(2*(32+8) + 64 + 16); over > most { // a quarter of the chunks is begun
			t.Errorf("dim %d: a replica costs %.1f bytes over its two copies, want at most %.0f", dim, over, most)
		}
	}
}

// What the protocol remembers of updates, to take each once, is a number for
// each holder and goes with it: however much happens, nothing is kept.
func TestConformanceC31WhatIsRememberedDoesNotGrow(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 8, Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(3, model, placement.Adaptive, true, Broken{})
	rng := rand.New(rand.NewPCG(1, 31))
	used := func() (bytes, sides int) {
		for _, n := range c.nodes {
			bytes += n.Memory().Bytes()
			sides += int(n.sides.made)
		}
		return bytes, sides
	}
	churn := func(times int) {
		rest := func() {
			if err := c.settle(rng, 1000); err != nil {
				t.Fatal(err)
			}
		}
		for range times {
			two, k := rng.Perm(3)[:2], godwit.Key(rng.IntN(8))
			for _, i := range two {
				c.nodes[i].Want(c.nodes[i], k)
			}
			rest()
			for _, i := range two {
				c.nodes[i].Push(k, []float32{1, 1})
			}
			if rng.IntN(2) == 0 {
				rest() // updates go by themselves, not with the End
			}
			for _, i := range two {
				c.nodes[i].Unwant(c.nodes[i], k)
				if rng.IntN(2) == 0 {
					rest() // the replica drains, or the key moves to it
				}
			}
			rest()
		}
	}
	churn(2000)
	bytes, sides := used()
	churn(10_000)
	if b, s := used(); b > bytes || s > sides {
		t.Errorf("%d bytes and %d sides after 2,000 times, %d and %d after 10,000 more", bytes, sides, b, s)
	}
	sum := Stats{}
	for _, n := range c.nodes {
		sum.MovesIn += n.Stats.MovesIn
		sum.Drops += n.Stats.Drops
		sum.Deltas += n.Stats.Deltas
	}
	if sum.MovesIn < 1000 || sum.Drops < 1000 || sum.Deltas < 100 {
		t.Errorf("%+v: the test is vacuous", sum)
	}
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

// What a shard knows of the copies for a cut counts while there are some, and takes no memory when the cut is over.
func TestCopiesForACutCountAndGoWithIt(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1000, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	n := newCluster(1, model, placement.Adaptive, true, Broken{}).nodes[0]
	keys := model.Table(0).Rows
	push := func(m Mark) {
		for k := range godwit.Key(keys) {
			n.PushAt(nil, k, []float32{1}, m)
		}
	}
	end := map[string]func(){
		"saved": func() {
			n.SealCut(false)
			for _, k := range n.Kept(nil) {
				n.Save(k, nil)
			}
			n.SavedCut()
			n.EndCut()
		},
		"given up": n.GiveUpCut,
	}
	for _, how := range []string{"saved", "given up"} {
		push(n.cut.settled)
		before := n.Memory().Sides
		push(n.cut.later())
		if copies := len(n.Kept(nil)); copies != int(keys) {
			t.Fatalf("%d copies, want %d: the test is vacuous", copies, keys)
		}
		if more := n.Memory().Sides - before; more < 20*int(keys) {
			t.Errorf("copies of %d rows count as %d bytes", keys, more)
		}
		end[how]()
		if more := n.Memory().Sides - before; more != 0 || n.cut.copies != nil {
			t.Errorf("%s: %d bytes are left of the cut", how, more)
		}
	}
}

// A cut may keep copies of a tenth of the rows, or 64 MiB of them. From half of that on the node hears that they take much, until few are left; the
// first that would be one too many gives the cut up.
func TestCopiesForACutHaveABound(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1000, Dim: 1}, godwit.Table{Name: "wide", Rows: 1, Dim: godwit.MaxDim})
	if err != nil {
		t.Fatal(err)
	}
	n := newCluster(1, model, placement.Adaptive, true, Broken{}).nodes[0]
	if narrow, wide := n.mostCopies(n.class(0)), n.mostCopies(n.class(1000)); narrow != 64<<20/4 || wide != 64/4 {
		t.Errorf("copies of %d rows of a float and of %d of 4 MiB may be kept, want 64 MiB of them", narrow, wide)
	}
	full, short := false, 0
	n.cfg.Kept = 1 // byte, so that a tenth is the bound
	n.cfg.CutFull, n.cfg.CutShort = func(is bool) { full = is }, func() { short++ }
	push := func(k godwit.Key, m Mark) { n.PushAt(nil, k, []float32{1}, m) }
	for k := range godwit.Key(1000) {
		push(k, n.cut.settled)
	}
	for k := range godwit.Key(100) {
		if want := k > 50; full != want {
			t.Fatalf("%d copies are kept of 1,000 rows: told that they take much: %v", k, full)
		}
		push(k, n.cut.later())
	}
	n.SealCut(false)
	for k := range godwit.Key(100) {
		if want := k < 88; full != want {
			t.Fatalf("%d copies are left: told that they take much: %v", 100-k, full)
		}
		n.Save(k, nil)
	}
	for k := range godwit.Key(101) {
		if short != 0 {
			t.Fatalf("the cut is given up with %d copies", k)
		}
		push(200+k, n.cut.later())
	}
	if left := len(n.Kept(nil)); short != 1 || left != 0 || full {
		t.Errorf("with one copy too many, the cut is given up %d times; %d copies are left, told that they take much: %v", short, left, full)
	}
}
