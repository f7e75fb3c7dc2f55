package shards

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/optim"
)

// byShard puts keys in an order in which those of a shard follow each other.
func (s *Set) byShard(keys []godwit.Key) {
	slices.SortFunc(keys, func(a, b godwit.Key) int {
		return cmp.Or(cmp.Compare(a&s.mask, b&s.mask), cmp.Compare(a, b))
	})
}

// sent returns what was sent to a node, which reads all by one decoder.
func sent(t *testing.T, ls *link.Links, out *link.Sender, to godwit.NodeID, d *wire.Decoder) []wire.Record {
	out.Flush()
	return roomtest.Records(t, d, ls.To(to).Take)
}

// Of keys of one shard, and of tables with values of two lengths, each request goes to the home of its key.
func TestRequestsForSeveralNodesGoToEach(t *testing.T) {
	s := setOf(t, 3, godwit.Table{Name: "a", Rows: 20_000, Dim: 1}, godwit.Table{Name: "b", Rows: 20_000, Dim: 3})
	ls, out := senderOf(s)
	rng := rand.New(rand.NewPCG(*roomtest.Seed, 2))
	var keys []godwit.Key
	for len(keys) < 3000 {
		if k := godwit.Key(rng.Uint64N(40_000)); s.proto.Homes.Home(k) != s.proto.Self {
			keys = append(keys, k)
		}
	}
	s.byShard(keys)
	var miss []int
	var vals []float32
	for i, k := range keys {
		miss = append(miss, i, len(vals))
		for j := range s.Table(k).Dim {
			vals = append(vals, float32(10*i+j))
		}
	}
	r := &Requests{Record: wire.Record{Kind: wire.Push, Op: 5, Odd: true}, Keys: keys, Miss: miss, Vals: vals}
	out.Keep()
	if !s.Request(out, r, 0, len(miss)) || int(r.Away) != len(keys) {
		t.Fatalf("%d of %d requests are sent on", r.Away, len(keys))
	}
	n := 0
	for to := range godwit.NodeID(3) {
		if to == s.proto.Self {
			continue
		}
		for _, x := range sent(t, ls, out, to, &wire.Decoder{Lists: &wire.Known{}}) {
			i := int(x.Index)
			want := wire.Record{Kind: wire.Push, Op: 5, Odd: true, Key: keys[i], Index: x.Index, Hops: 1, Origin: s.proto.Self}
			dim := s.Table(x.Key).Dim
			if home := s.proto.Homes.Home(x.Key); home != to || !slices.Equal(x.Vals, vals[miss[2*i+1]:][:dim]) {
				t.Fatalf("node %d gets a push of key %d of node %d, with %v", to, x.Key, home, x.Vals)
			}
			if x.Vals = nil; x.Check() != nil || x.Kind != want.Kind || x.Op != want.Op || x.Key != want.Key || x.Hops != want.Hops || x.Origin != want.Origin || !x.Odd {
				t.Fatalf("node %d gets %+v, want %+v", to, x, want)
			}
			n++
		}
	}
	if n != len(keys) {
		t.Errorf("%d requests leave, want %d", n, len(keys))
	}
}

// The answers to a batch are those to its requests one by one, in their order, also where a rule makes
// what pulls get; a request that is no common one ends it.
func TestABatchIsAnsweredAsItsRequestsAre(t *testing.T) {
	s := setOf(t, 2, godwit.Table{Name: "a", Rows: 4000, Dim: 2}, godwit.Table{Name: "b", Rows: 4000, Dim: 2, Rule: optim.FTRL{LR: 1, Beta: 1}})
	ls, out := senderOf(s)
	a, v := s.Access(), s.Server(1, out)
	keys := homed(t, s, 3500)
	s.byShard(keys)
	keys = keys[:32]
	vals := make([]float32, 2*len(keys))
	for i := range vals {
		vals[i] = float32(i + 1)
	}
	if !a.Serve(wire.Push, keys, vals) {
		t.Fatal("the rows are gone")
	}
	batch := func(kind wire.Kind, absent bool) (served int) {
		var e wire.Encoder
		e.Reset(nil, 0)
		for i, k := range keys {
			if absent && i == 20 {
				k = s.proto.Model.Key(0, 0)
				for s.proto.Homes.Home(k) == s.proto.Self {
					k++
				}
			}
			r := wire.Record{Kind: kind, Key: k, Op: 9, Index: uint32(i), Origin: 1, Hops: 1}
			if kind == wire.Push {
				r.Vals = vals[2*i:][:2]
			}
			e.Append(&r)
		}
		var d wire.Decoder
		roomtest.Must(t, d.Reset(e.Frame()))
		var b wire.Batch
		if n, err := d.Batch(&b); n != len(keys) || err != nil {
			t.Fatalf("a batch of %d, %v", n, err)
		}
		v.FindBatch(&b)
		return v.ServeBatch(&b, 0)
	}
	peer, got := &wire.Decoder{Lists: &wire.Known{}}, make([]float32, 2)
	for _, kind := range []wire.Kind{wire.Pull, wire.Push, wire.Pull} {
		if n := batch(kind, false); n != len(keys) {
			t.Fatalf("%d of %d are served", n, len(keys))
		}
		answers := sent(t, ls, out, 1, peer)
		if len(answers) != len(keys) {
			t.Fatalf("%d answers, want %d", len(answers), len(keys))
		}
		for i, x := range answers {
			if x.Kind != answerTo(kind) || x.Key != keys[i] || int(x.Index) != i || x.Op != 9 {
				t.Fatalf("answer %d is %+v", i, x)
			}
			if kind == wire.Push {
				continue
			}
			if a.Read(s.Table(x.Key), x.Key, got); !slices.Equal(got, x.Vals) {
				t.Fatalf("the peer reads %v of key %d, want %v", x.Vals, x.Key, got)
			}
		}
	}
	if n := batch(wire.Pull, true); n != 20 {
		t.Errorf("%d requests are served before one for a key that is elsewhere, want 20", n)
	}
	if n := len(sent(t, ls, out, 1, peer)); n != 20 {
		t.Errorf("%d answers, want 20", n)
	}
}
