package shards

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/placement"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

// setOf returns the rows of node 0 of a run of so many, none of which is used.
func setOf(t testing.TB, nodes int, tables ...godwit.Table) *Set {
	cfg := roomtest.Protocol(t, 0, nodes, placement.RelocateAll, 9, tables...)
	s, err := New(cfg, 1<<30, store.HeapAlloc, host.NewBell())
	roomtest.Must(t, err)
	return s
}

// senderOf returns a way to send to the other nodes, who take nothing.
func senderOf(s *Set) (*link.Links, *link.Sender) {
	ls := link.New(host.New(host.Real()), s.proto.Self, s.proto.Nodes, 1, host.Usual, filter.Compress{}, s.rounds)
	for i := 1; i < s.proto.Nodes; i++ {
		ls.Imagine(godwit.NodeID(i), func() {})
	}
	out := ls.Sender()
	return ls, &out
}

// homed returns n keys that have their home here.
func homed(t testing.TB, s *Set, n int) (keys []godwit.Key) {
	for k := godwit.Key(0); len(keys) < n; k++ {
		if !s.proto.Model.Has(k) {
			t.Fatalf("%d of %d keys have their home here", len(keys), n)
		}
		if s.proto.Homes.Home(k) == s.proto.Self {
			keys = append(keys, k)
		}
	}
	return keys
}

// A worker and a peer reach the same rows: what one pushes, the other reads.
func TestWorkersAndPeersReachTheSameRows(t *testing.T) {
	s := setOf(t, 2, godwit.Table{Name: "t", Rows: 100, Dim: 2})
	ls, out := senderOf(s)
	k := homed(t, s, 1)
	a, v := s.Access(), s.Server(1, out)
	if ok := a.Serve(wire.Push, k, []float32{1, 2}); !ok || a.Served[protocol.AtOwner] != 1 || len(a.Miss) > 0 {
		t.Fatalf("a push of a key that is here: %v, %v; %v are missed", a.Served, ok, a.Miss)
	}
	recs := []wire.Record{{Kind: wire.Push, Key: k[0], Op: 1, Origin: 1, Vals: []float32{10, 20}}, {Kind: wire.Pull, Key: k[0], Op: 2, Origin: 1}}
	v.Find(recs)
	for i := range recs {
		if !v.Serve(i, &recs[i]) {
			t.Fatalf("request %d of a peer is not served", i)
		}
	}
	got := make([]float32, 2)
	if p, ok := a.Read(s.Table(k[0]), k[0], got); !ok || p != protocol.AtOwner || got[0] != 11 || got[1] != 22 {
		t.Errorf("the worker reads %v at %v, %v", got, p, ok)
	}
	out.Flush()
	var d wire.Decoder
	d.Lists = &wire.Known{}
	roomtest.Must(t, d.Reset(ls.To(1).Take(nil)))
	var r wire.Record
	for _, kind := range []wire.Kind{wire.Done, wire.PullReply} {
		if ok, err := d.Next(&r); !ok || err != nil || r.Kind != kind {
			t.Fatalf("the peer gets %v, %v, %v, want a %v", r.Kind, ok, err, kind)
		}
	}
	if r.Vals[0] != 11 || r.Vals[1] != 22 {
		t.Errorf("the peer reads %v", r.Vals)
	}
}

// A push takes rows where the pull before found them, which may have gone or been made since.
func TestAPushBehindAPullOfTheSameKeysSeesWhatBecameOfThem(t *testing.T) {
	const keys, dim = 300, 2
	s := setOf(t, 2, godwit.Table{Name: "t", Rows: 4 * keys, Dim: dim})
	_, out := senderOf(s)
	ks := homed(t, s, keys)
	a, other, v := s.Access(), s.Access(), s.Server(1, out)
	vals := make([]float32, keys*dim)
	serve := func(a *Access, kind wire.Kind, ks []godwit.Key, missed ...int) {
		t.Helper()
		ok := a.Serve(kind, ks, vals[:len(ks)*dim])
		if got := int(a.Served[protocol.AtOwner]); !ok || got != len(ks)-len(missed) || len(a.Miss) != 2*len(missed) {
			t.Fatalf("%v: %v, %d of %d keys are served, %v missed, want %v", kind, ok, got, len(ks), a.Miss, missed)
		}
		for i, at := range missed {
			if a.Miss[2*i] != at {
				t.Errorf("%v: %v are missed, want %v", kind, a.Miss, missed)
			}
		}
	}
	serve(&a, wire.Pull, ks)
	for i := range vals {
		vals[i] = 1
	}
	serve(&a, wire.Push, ks)
	serve(&a, wire.Push, ks[:200]) // a part of them
	serve(&a, wire.Push, ks[100:]) // others
	serve(&a, wire.Pull, ks)
	for i, x := range vals {
		if want := [3]float32{2, 3, 2}[i/dim/100]; x != want {
			t.Fatalf("key %d has %v, want %v", i/dim, x, want)
		}
	}
	for _, i := range []int{7, 150} {
		roomtest.Must(t, v.Step(out, &wire.Record{Kind: wire.Localize, Key: ks[i], Op: 1, Origin: 1}))
	}
	serve(&other, wire.Pull, ks[:1])
	serve(&a, wire.Push, ks, 7, 150)
	serve(&a, wire.Pull, ks, 7, 150)
	serve(&a, wire.Push, ks, 7, 150)
}

// What is served is counted by table: in calls of one and of several, of rows that are there, are made one by
// one, or together.
func TestKeysAreCountedByTheirTable(t *testing.T) {
	s := setOf(t, 1, godwit.Table{Name: "a", Rows: 1 << 15, Dim: 8}, godwit.Table{Name: "b", Rows: 1 << 15, Dim: 16})
	a := s.Access()
	next := [2]uint64{}
	serve := func(kind wire.Kind, runs ...int) {
		t.Helper()
		var keys []godwit.Key
		floats, got, want := 0, [2]uint64{}, [2]uint64{}
		for i := 0; i < len(runs); i += 2 {
			for range runs[i+1] {
				keys = append(keys, s.proto.Model.Key(runs[i], next[runs[i]]))
				next[runs[i]]++
			}
			want[runs[i]] += uint64(runs[i+1])
			floats += runs[i+1] * (8 + 8*runs[i])
		}
		if ok := a.Serve(kind, keys, make([]float32, floats)); !ok || len(a.Miss) > 0 {
			t.Fatalf("runs %v: %v, %d missed", runs, ok, len(a.Miss))
		}
		if table, ok := a.Sole(); ok {
			got[table] = a.Served[protocol.AtOwner]
		} else {
			for _, p := range a.Parts() {
				got[p.Table] += p.Served[protocol.AtOwner]
			}
		}
		if got != want {
			t.Errorf("runs %v, %v: %v by table, want %v", runs, kind, got, want)
		}
	}
	for _, kind := range []wire.Kind{wire.Pull, wire.Push} {
		for _, runs := range [][]int{{0, 1}, {1, 1}, {1, 300}, {0, 300}, {1, 300}, {0, 200, 1, 300, 0, 1, 1, 100}, {1, 5, 0, 5}, {0, 1}} {
			serve(kind, runs...)
		}
	}
}

// round runs a round over all shards.
func round(s *Set, out *link.Sender) (held bool) {
	out.ForgetFull()
	for i := range s.Shards() {
		held = s.Round(i, out, true, false) || held
	}
	return held
}

// Several goroutines go over the shards, and what changed is sent once.
func TestRoundsOverShardsAreRunSideBySide(t *testing.T) {
	policy, err := placement.ByName("replicate")
	roomtest.Must(t, err)
	cfg := roomtest.Protocol(t, 0, 2, policy, 7, godwit.Table{Name: "t", Rows: 10_000, Dim: 1})
	s, err := New(cfg, 1<<30, store.HeapAlloc, host.NewBell())
	roomtest.Must(t, err)
	ls, out := senderOf(s)
	keys := homed(t, s, 3000)
	v, a := s.Server(1, out), s.Access()
	for _, k := range keys {
		roomtest.Must(t, v.Step(out, &wire.Record{Kind: wire.Interest, Key: k, Seq: 1, Origin: 1}))
	}
	var d wire.Decoder
	d.Lists = &wire.Known{}
	take := func() []wire.Record {
		out.Flush()
		return roomtest.Records(t, &d, ls.To(1).Take)
	}
	take()
	out.Records = 0
	for range 20 {
		a.Serve(wire.Push, keys, make([]float32, len(keys)))
		others := [3]link.Sender{ls.Sender(), ls.Sender(), ls.Sender()}
		var next atomic.Int32
		var all sync.WaitGroup
		for i := range others {
			all.Go(func() {
				for {
					x := int(next.Add(1)) - 1
					if x >= s.Shards() {
						return
					}
					if s.Round(x, &others[i], true, false) {
						t.Error("something stays though there is room")
					}
				}
			})
		}
		all.Wait()
		for i := range others {
			out.Join(&others[i])
			if others[i].Any() || others[i].Records > 0 {
				t.Error("a sender that was joined has something left")
			}
		}
		got := map[godwit.Key]int{}
		for _, r := range take() {
			got[r.Key]++
		}
		if len(got) != len(keys) || out.Records != len(keys) {
			t.Fatalf("%d of %d keys are refreshed, by %d records", len(got), len(keys), out.Records)
		}
		out.Records = 0
		if !s.Idle() {
			t.Error("after a round there is work")
		}
	}
}

// Whatever changes a shard so that it has something for a round sets its bit, once,
// and rings the bell; the round clears it.
func TestWorkForRoundsIsNoted(t *testing.T) {
	s := setOf(t, 2, godwit.Table{Name: "t", Rows: 100, Dim: 1})
	_, out := senderOf(s)
	if !s.Idle() {
		t.Fatal("a set that nobody used has work")
	}
	k := homed(t, s, 1)[0]
	v := s.Server(1, out)
	roomtest.Must(t, v.Step(out, &wire.Record{Kind: wire.Interest, Key: k, Op: 1, Origin: 1}))
	s.Want(out, []godwit.Key{k})
	a := s.Access()
	for range 3 {
		a.Serve(wire.Push, []godwit.Key{k}, []float32{1})
	}
	if held := round(s, out); held {
		t.Error("a round leaves something though there is room")
	}
	if f := s.BeginFlush(); !f.Arrived() || len(f.Left()) > 0 {
		t.Error("an owner waits for itself")
	}
}

// A breaking sender panics instead of sending.
type breaking struct{ *link.Sender }

func (breaking) Send(godwit.NodeID, *wire.Record) { panic("sent") }

// A simulation with rules switched off goes on to its end after a panic: it must find no
// shard locked.
func TestAStepThatPanicsLeavesNoShardLocked(t *testing.T) {
	s := setOf(t, 2, godwit.Table{Name: "t", Rows: 100, Dim: 2})
	_, out := senderOf(s)
	k := homed(t, s, 1)
	v := s.Server(1, out)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the pull of a peer was not answered")
			}
		}()
		_ = v.Step(breaking{out}, &wire.Record{Kind: wire.Pull, Key: k[0], Op: 1, Origin: 1})
	}()
	x := s.shard(k[0])
	if !x.TryLock() {
		t.Fatal("the shard is still locked")
	}
	x.Unlock()
}

// Updates of a replica from before a cut and from after it go one after the other. That a flush has the second sent, though it is too small by itself, is
// work for a round.
func TestWhatAFlushHasSentLaterIsWork(t *testing.T) {
	policy, err := placement.ByName("nonuniform(threshold=5)")
	roomtest.Must(t, err)
	s, err := New(roomtest.Protocol(t, 0, 2, policy, 7, godwit.Table{Name: "t", Rows: 100, Dim: 1}), 1<<30, store.HeapAlloc, host.NewBell())
	roomtest.Must(t, err)
	ls, out := senderOf(s)
	k := godwit.Key(0)
	for !s.homedElsewhere(k) {
		k++
	}
	v, a := s.Server(1, out), s.Access()
	var d wire.Decoder
	d.Lists = &wire.Known{}
	sent := func() wire.Record {
		t.Helper()
		out.Flush()
		rs := roomtest.Records(t, &d, ls.To(1).Take)
		if len(rs) != 1 {
			t.Fatalf("%d records are sent, want 1", len(rs))
		}
		return rs[0]
	}
	s.Hold(out, k)
	roomtest.Must(t, v.Step(out, &wire.Record{Kind: wire.Refresh, Key: k, Version: 1, Seq: sent().Seq, Vals: []float32{0}}))
	for _, a.Mark = range []protocol.Mark{0, protocol.OddMark} {
		a.Serve(wire.Push, []godwit.Key{k}, []float32{1})
	}
	f := s.BeginFlush()
	round(s, out)
	roomtest.Must(t, v.Step(out, &wire.Record{Kind: wire.Ack, Key: k, Version: 1, Seq: sent().Seq}))
	if round(s, out); !s.Idle() {
		t.Fatal("an update is not held back: the test is vacuous")
	}
	if f.Arrived() || s.Idle() {
		t.Error("nothing is to be sent, and a flush waits for it")
	}
}
