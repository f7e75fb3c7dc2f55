package shards

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
)

// Requests are what a call of a worker asks for, in the order in which it is asked for.
type Requests struct {
	Record wire.Record       // its Kind and Op are those of all; the rest is scratch
	Keys   []godwit.Key      // of the call
	Miss   []int             // positions of the keys that are asked for, each followed by the offset of its value
	Vals   []float32         // of a push or set: these offsets are in it
	Forms  []godwit.Encoding // … and how they are written, one for each that is asked for; none: raw

	// Ask, if set, has a shard take Record.
	Ask func(*protocol.Shard)

	// Direct has all go to where their keys' homes say that these are, not where answers came from: so they keep
	// the order in which they are asked for, also where keys move.
	Direct bool

	// How many were sent on, and how many wait at this node for their keys, which are on
	// their way here; of these, how many though the keys were announced.
	Away, Waits, Late uint64

	group wire.Group    // those of a shard that go to one node, and are not sent yet
	to    godwit.NodeID // … which one
	plain bool          // a group takes them
}

// Begin makes them those of a call that asks for all keys at some positions. Its other fields are empty.
func (r *Requests) Begin(all wire.Record, keys []godwit.Key, miss []int) {
	r.Record, r.Keys, r.Miss = all, keys, miss
	r.Vals, r.Forms, r.Ask, r.Direct = nil, nil, nil, false
	r.Away, r.Waits, r.Late = 0, 0, 0
}

// Request has the shards of keys take some requests, those from a place in r.Miss up to another:
// each is sent to whom its shard believes to be the owner, or waits here. Its Index is its number
// in r.Miss. It reports false if the rows are gone.
func (s *Set) Request(out *link.Sender, r *Requests, from, end int) bool {
	t := s.First()
	r.begin(s.proto.Self)
	for m := from; m < end; {
		first := r.Keys[r.Miss[m]]
		x := s.shard(first)
		x.lockFor(out)
		if x.over() {
			x.Unlock()
			return false
		}
		for most := min(end, m+2*maxLocked); m < most; m += 2 {
			k := r.Keys[r.Miss[m]]
			if !s.SameShard(k, first) {
				break
			}
			if !t.Has(k) {
				t = s.Table(k)
			}
			if !r.pass(x, out, k, m, t) {
				out.SendGroup(r.to, &r.group)
				r.fill(k, m, t)
				s.request(x, out, r)
			}
		}
		out.SendGroup(r.to, &r.group)
		x.Unlock()
	}
	return true
}

// pass puts the request for a key into the group of those that go to one node, if it is for the owner
// to take, and sends those before if they go to another one. The shard is locked.
func (r *Requests) pass(x *shard, out *link.Sender, k godwit.Key, m int, t *Table) bool {
	if !r.plain {
		return false
	}
	to, ok := x.Pass(k, r.Direct)
	if !ok {
		return false
	}
	var vals []float32
	if r.Vals != nil {
		vals = r.Vals[r.Miss[m+1]:][:t.Dim]
	}
	if to != r.to || !r.group.Takes(len(vals)) {
		out.SendGroup(r.to, &r.group)
		r.to = to
	}
	r.group.Add(k, uint32(m/2), vals)
	r.Away++
	return true
}

// begin readies the group for requests of a node.
func (r *Requests) begin(self godwit.NodeID) {
	r.plain = r.Ask == nil && r.Record.Kind <= wire.Push && r.Record.Op != 0 && len(r.Forms) == 0
	h := &r.group.Head
	h.Kind, h.Op, h.Origin, h.Hops, h.Rough, h.Whole, h.Odd = r.Record.Kind, r.Record.Op, self, 1, r.Record.Rough, r.Record.Whole, r.Record.Odd
}

// fill makes r.Record the request for a key.
func (r *Requests) fill(k godwit.Key, m int, t *Table) {
	r.Record.Key, r.Record.Index, r.Record.Seq = k, uint32(m/2), 0
	if r.Vals == nil {
		return
	}
	r.Record.Vals = r.Vals[r.Miss[m+1]:][:t.Dim]
	if len(r.Forms) > 0 {
		f := r.Forms[m/2]
		r.Record.Coding, r.Record.Step = wire.Coding(f.Coding), f.Step
	}
}

// request has a shard, which is locked, take r.Record.
func (s *Set) request(x *shard, out *link.Sender, r *Requests) {
	waited, late := x.Stats.Waited, x.Stats.Late
	switch {
	case r.Ask != nil:
		r.Ask(x.Shard)
	case r.Direct:
		x.RequestDirect(out, &r.Record)
	default:
		x.Request(out, &r.Record)
	}
	if x.Stats.Waited != waited {
		r.Waits++
	} else {
		r.Away++
	}
	r.Late += x.Stats.Late - late
	s.noteWork(x, r.Record.Key)
}
