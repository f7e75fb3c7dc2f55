package protocol

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

func bareShard(t *testing.T) *Shard {
	t.Helper()
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 8, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	return newCluster(1, model, placement.Adaptive, true, Broken{}).nodes[0].Shard
}

// Sides lie in lines of the processor's cache, one each, and the collector need
// not look at them.
func TestASideFillsALineOfTheCache(t *testing.T) {
	if n := unsafe.Sizeof(side{}); n != 64 {
		t.Errorf("a side takes %d bytes, want 64", n)
	}
	part := unsafe.Sizeof(side{}.part)
	for what, n := range map[string]uintptr{"main copy": unsafe.Sizeof(mainSide{}), "placeholder": unsafe.Sizeof(placeholderSide{}), "replica": unsafe.Sizeof(replicaSide{})} {
		if n > part {
			t.Errorf("the side of a %s takes %d bytes, there are %d", what, n, part)
		}
	}
	if n := unsafe.Sizeof(holder{}); n != 32 {
		t.Errorf("a holder takes %d bytes, want 32", n)
	}
	if n := unsafe.Sizeof(waiter{}); n > 40 {
		t.Errorf("a waiter takes %d bytes, want at most 40", n)
	}
	var p pool[side]
	for range 5 * poolChunk {
		if at := uintptr(unsafe.Pointer(p.at(p.take()))); at%64 != 0 {
			t.Fatalf("a side begins %d bytes after a line", at%64)
		}
	}
}

func TestAPoolHandsOutEachNumberOnce(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 1))
	var p pool[holder]
	out := map[uint32]bool{}
	most := 0
	for range 10_000 {
		if rng.IntN(2) == 0 && len(out) < 50 {
			n := p.take()
			if n == 0 || out[n] {
				t.Fatalf("number %d was handed out twice, seed %d", n, seed)
			}
			if *p.at(n) != (holder{}) {
				t.Fatalf("number %d is not zero: %+v, seed %d", n, *p.at(n), seed)
			}
			p.at(n).seq = uint64(n)
			out[n] = true
			most = max(most, len(out))
			continue
		}
		for n := range out {
			if p.at(n).seq != uint64(n) {
				t.Fatalf("number %d has the content %+v, seed %d", n, *p.at(n), seed)
			}
			p.give(n)
			delete(out, n)
			break
		}
	}
	if p.used() != len(out) || int(p.made) > most || most < 20 {
		t.Errorf("%d are used and %d were made, want %d and at most %d", p.used(), p.made, len(out), most)
	}
}

func TestHoldersKeepTheirOrder(t *testing.T) {
	s := bareShard(t)
	const seed = 2
	rng := rand.New(rand.NewPCG(seed, 2))
	var d [2]mainSide // two keys, of the same pool
	var want [2][]godwit.NodeID
	long := 0
	for range 5000 {
		i, n := rng.IntN(2), godwit.NodeID(rng.IntN(6))
		switch at := slices.Index(want[i], n); {
		case rng.IntN(100) == 0:
			s.dropHolders(&d[i])
			want[i] = nil
		case at < 0:
			if s.holder(&d[i], n) != nil {
				t.Fatalf("node %d is a holder, want %v, seed %d", n, want[i], seed)
			}
			s.addHolder(&d[i], n).seq = uint64(n)
			want[i] = append(want[i], n)
		default:
			if x := s.holder(&d[i], n); x == nil || x.seq != uint64(n) {
				t.Fatalf("what is known of node %d is %+v, seed %d", n, x, seed)
			}
			s.dropHolder(&d[i], n)
			want[i] = slices.Delete(want[i], at, at+1)
		}
		var got []godwit.NodeID
		for x := s.firstHolder(&d[i]); x != nil; x = s.nextHolder(&d[i], x) {
			got = append(got, x.node)
		}
		if !slices.Equal(got, want[i]) {
			t.Fatalf("holders are %v, want %v, seed %d", got, want[i], seed)
		}
		long = max(long, len(got))
	}
	if used := s.holders.used(); used != len(want[0])+len(want[1]) || long < 5 {
		t.Errorf("%d holders are in use, want %d; %d at once", used, len(want[0])+len(want[1]), long)
	}
}

// A holder that does not use its copy is refreshed after 0, 1, 3 and then
// always 3 rounds that left it out.
func TestIdleHoldersAreRefreshedLessAndLess(t *testing.T) {
	var x holder
	count := func() (n int) {
		for x.skips() {
			n++
		}
		return n
	}
	for turn := range 2 {
		for i, want := range []int{0, 1, 3, 3, 3} {
			x.refreshed()
			if got := count(); got != want {
				t.Errorf("turn %d: after %d refreshes, %d rounds leave it out, want %d", turn, i+1, got, want)
			}
		}
		x.used()
	}
}

// An announced key that is here alone has no side, and pulls and pushes take the short ways.
// While another node has a copy it has one, and no intent is lost on the way to it and back.
func TestIntentsForAKeyThatIsHereAloneMakeNoSide(t *testing.T) {
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 8, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(2, model, placement.Adaptive, true, Broken{})
	const seed = 4
	rng := rand.New(rand.NewPCG(seed, 4))
	k := godwit.Key(0)
	for c.homes.Home(k) != 0 {
		k++
	}
	owner, other := c.nodes[0], c.nodes[1]
	check := func(when string, want uint32, side bool) {
		t.Helper()
		if err := c.settle(rng, 1000); err != nil {
			t.Fatal(err)
		}
		ref, ok := owner.st.Find(k)
		if !ok {
			t.Fatalf("%s: the key is not at its home", when)
		}
		h := owner.st.Header(ref)
		if n := owner.wants(h); n != want || hasSide(h) != side || owner.Holding(k).Wanted != (want > 0) {
			t.Errorf("%s: %d intents, want %d; it has a side: %v, want %v; an observer sees it wanted: %v", when, n, want, hasSide(h), side, owner.Holding(k).Wanted)
		}
		scratch := []float32(nil)
		for _, r := range []wire.Record{{Kind: wire.Pull, Key: k, Origin: 1}, {Kind: wire.Push, Key: k, Origin: 1, Vals: []float32{1}}} {
			if _, short := owner.cfg.Update(0).Serve(h, &r, &scratch); short == side {
				t.Errorf("%s: %v goes the short way: %v", when, r.Kind, short)
			}
		}
	}
	owner.Want(owner, k)
	check("announced", 1, false)
	owner.Want(owner, k)
	check("announced twice", 2, false)
	other.Want(other, k)
	check("another node has a copy", 2, true)
	owner.Unwant(owner, k)
	owner.Want(owner, k)
	owner.Want(owner, k)
	check("announced once more", 3, true)
	other.Unwant(other, k)
	check("the copy is gone", 3, false)
	owner.Unwant(owner, k)
	owner.Unwant(owner, k)
	check("the last intent", 1, false)
	other.Want(other, k)
	check("another copy", 1, true)
	other.Unwant(other, k)
	check("the other copy is gone", 1, false)
	owner.Unwant(owner, k)
	check("nobody wants it", 0, false)
	owner.Unwant(owner, k)
	check("one end too many", 0, false)
}

// More intents than a header can count are counted by a side.
func TestAHeaderCountsAsManyIntentsAsItHasBitsFor(t *testing.T) {
	s := bareShard(t)
	h := s.st.Header(s.create(3))
	s.mark(h, OddMark)
	for _, x := range []struct {
		n    uint32
		side bool
	}{{mostCounted, false}, {mostCounted + 1, true}, {mostCounted, false}, {0, false}} {
		s.setWants(h, x.n)
		s.tidy(h)
		if got := s.wants(h); got != x.n || hasSide(h) != x.side || stateOf(h) != owner || markOf(h) != OddMark {
			t.Errorf("%d intents, want %d; a side: %v, want %v; state %v, mark %v", got, x.n, hasSide(h), x.side, stateOf(h), markOf(h))
		}
	}
}

// A request that waited goes its way as it came, with its values, in order,
// those first that came over the old owner.
func TestRequestsThatWaitedAreAsTheyCame(t *testing.T) {
	s := bareShard(t)
	h := s.st.Header(s.create(3))
	vals := []float32{5}
	records := []wire.Record{
		{Kind: wire.Push, Key: 3, Origin: 2, Op: 7, Index: 9, Hops: 2, Vals: vals, Coding: wire.Fixed8, Step: 0.5},
		{Kind: wire.Pull, Key: 3, Origin: 1, Op: 8, Index: 1, Hops: 1, Coming: true},
		{Kind: wire.Delta, Key: 3, Origin: 4, Seq: 11, Hops: 3, Vals: vals},
	}
	for i := range records {
		s.wait(h, &records[i])
	}
	vals[0] = 6 // the sender's memory is good during the call only
	d := s.side(h)
	if n := s.waits(d); n != 3 {
		t.Fatalf("%d requests wait, want 3", n)
	}
	i := 0
	s.each(d.queue, func(n uint32) bool {
		var r wire.Record
		s.recall(3, s.waiters.at(n), &r)
		want := records[i]
		if len(r.Vals) != len(want.Vals) || len(r.Vals) > 0 && r.Vals[0] != 5 {
			t.Errorf("request %d has the values %v, want 5", i, r.Vals)
		}
		r.Vals, want.Vals = nil, nil
		if r.Kind != want.Kind || r.Key != want.Key || r.Origin != want.Origin || r.Op != want.Op || r.Index != want.Index || r.Hops != want.Hops ||
			r.Coming != want.Coming || r.Seq != want.Seq || r.Coding != want.Coding || r.Step != want.Step {
			t.Errorf("request %d is %+v, want %+v", i, r, want)
		}
		i++
		return true
	})
	var out answers
	s.resume(&out, 3, d.takeQueue(), true)
	if len(out) != 2 || out[0] != 8 || out[1] != 7 {
		t.Errorf("operations %v were answered, want 8 and 7", out)
	}
	if s.waiters.used() != 0 || len(s.vectors.free) != len(s.vectors.list) || len(s.vectors.list) == 0 {
		t.Errorf("%d waiters and %d of %d vectors are in use", s.waiters.used(), len(s.vectors.list)-len(s.vectors.free), len(s.vectors.list))
	}
}

// answers is an Out that notes the operations that are answered.
type answers []uint64

func (a *answers) Send(_ godwit.NodeID, r *wire.Record) { *a = append(*a, r.Op) }
func (a *answers) Room(godwit.NodeID) bool              { return true }
func (a *answers) Takes(godwit.NodeID) bool             { return true }
func (a *answers) Strained(godwit.NodeID) bool          { return false }
func (a *answers) Rooms() bool                          { return true }
func (a *answers) Crowded(godwit.NodeID) bool           { return false }
func (a *answers) Rests(godwit.NodeID) bool             { return false }
func (a *answers) Ask(godwit.NodeID, int) bool          { return true }
func (a *answers) Got(godwit.NodeID, int)               {}
func (a *answers) Now() int64                           { return 0 }
