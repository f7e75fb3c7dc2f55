package shards

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
)

// Requests for many keys leave in the order in which they stand, each once, with the values and
// the form of its own; what is on its way here waits. After the rows are gone none leaves.
func TestManyRequestsLeaveInTheirOrder(t *testing.T) {
	s := setOf(t, 2, godwit.Table{Name: "a", Rows: 5000, Dim: 1}, godwit.Table{Name: "b", Rows: 5000, Dim: 3})
	ls, out := senderOf(s)
	rng := rand.New(rand.NewPCG(*roomtest.Seed, 1))
	var keys, coming []godwit.Key
	var miss []int
	var vals []float32
	for len(keys) < 2000 {
		k := godwit.Key(rng.Uint64N(10000))
		if s.proto.Homes.Home(k) == s.proto.Self {
			continue
		}
		miss = append(miss, len(keys), len(vals))
		keys = append(keys, k)
		for i := range s.Table(k).Dim {
			vals = append(vals, float32(len(keys)%200+i))
		}
	}
	s.Want(out, append(coming, keys[7], keys[1000]))
	out.Flush()
	take := func() []wire.Record {
		return roomtest.Records(t, &wire.Decoder{Lists: &wire.Known{}}, ls.To(1).Take)
	}
	if n := len(take()); n != 2 {
		t.Fatalf("%d records ask for two keys", n)
	}

	var o Order
	o.Misses(s, keys, miss)
	forms := make([]godwit.Encoding, len(keys))
	forms[3].Coding = godwit.Coding(wire.BF16)
	r := &Requests{Record: wire.Record{Kind: wire.Push, Op: 5}, Keys: keys, Miss: miss, Vals: vals, Forms: forms}
	for from := 0; from < len(miss); from += 100 {
		if !s.Request(out, r, from, from+100) {
			t.Fatal("the rows are gone")
		}
	}
	waits := 0
	for _, k := range keys {
		if k == keys[7] || k == keys[1000] {
			waits++
		}
	}
	if int(r.Waits) != waits || int(r.Away) != len(keys)-waits {
		t.Errorf("%d requests wait, %d were sent on; want %d and %d", r.Waits, r.Away, waits, len(keys)-waits)
	}
	out.Flush()
	sent := take()
	if len(sent) != len(keys)-waits {
		t.Fatalf("%d requests leave", len(sent))
	}
	last, locks := -1, 0
	for i, x := range sent {
		m := 2 * int(x.Index)
		dim := s.Table(x.Key).Dim
		switch {
		case int(x.Index) <= last:
			t.Fatalf("request %d comes after %d", x.Index, last)
		case x.Key != keys[miss[m]] || !slices.Equal(x.Vals, vals[miss[m+1]:][:dim]):
			t.Fatalf("request %d is of key %d with %v", x.Index, x.Key, x.Vals)
		case (x.Coding == wire.BF16) != (x.Index == 3):
			t.Fatalf("request %d has coding %v", x.Index, x.Coding)
		case i > 0 && !s.SameShard(x.Key, sent[i-1].Key):
			locks++
		}
		last = int(x.Index)
	}
	if locks > len(s.shards) {
		t.Errorf("requests for keys of %d shards change the shard %d times", len(s.shards), locks)
	}
	s.Close()
	if s.Request(out, r, 0, 2) || len(take()) > 0 {
		t.Error("a request leaves when the rows are gone")
	}
}

// What an access missed is asked for shard by shard, if it is much; keys that are there twice stay
// in their order.
func TestMissesAreOrderedByShard(t *testing.T) {
	s := setOf(t, 2, godwit.Table{Name: "t", Rows: 5000, Dim: 2})
	keys := make([]godwit.Key, 2*len(s.shards))
	var miss []int
	for i := range keys {
		keys[i] = godwit.Key(i * i % 1999)
		if i%3 > 0 {
			miss = append(miss, i, 2*i)
		}
	}
	var o Order
	few := slices.Clone(miss[:20])
	o.Misses(s, keys, few)
	if !slices.Equal(few, miss[:20]) {
		t.Errorf("few were put in order: %v", few)
	}
	was := slices.Clone(miss)
	o.Misses(s, keys, miss)
	seen := map[int]bool{}
	for m := 0; m < len(miss); m += 2 {
		i := miss[m]
		if miss[m+1] != 2*i || seen[i] || i%3 == 0 {
			t.Fatalf("position %d comes with offset %d, before: %v", i, miss[m+1], seen[i])
		}
		seen[i] = true
		if m == 0 {
			continue
		}
		before := miss[m-2]
		if a, b := s.part(keys[before], 2), s.part(keys[i], 2); a > b || a == b && before > i {
			t.Fatalf("position %d of part %d comes before position %d of part %d", before, a, i, b)
		}
	}
	if 2*len(seen) != len(was) {
		t.Errorf("%d positions of %d", len(seen), len(was)/2)
	}
}
