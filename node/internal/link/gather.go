package link

import (
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
)

// A batch is records to one peer that a sender has gathered, and what it knows of the queue since it looked last.
type batch struct {
	recs    []wire.Record // their values are in vals; they say how many
	vals    []float32     // one after the other
	room    int           // bytes that the queue had room for, for copies
	crowded bool
	looked  bool
}

// gathered is how many records are gathered for a peer at the most, and gatheredFloats how many values: so much stays in a processor's first cache.
const (
	gathered       = 64
	gatheredFloats = 4096
)

// Gather begins a row of records that several goroutines send at the same time: each puts its records into the queues several at a time, so
// that it seldom waits for another one. GatherEnd ends it. The order of records matters by shard: who has a shard's lock calls GatherEnd
// before it lets go of that.
func (s *Sender) Gather() {
	if s.batches == nil {
		s.batches = make([]batch, len(s.ls.peers))
	}
	s.gathers = true
}

// GatherEnd puts into the queues what was gathered.
func (s *Sender) GatherEnd() {
	s.gathers = false
	for i := range s.batches {
		b := &s.batches[i]
		if len(b.recs) > 0 {
			s.hand(godwit.NodeID(i), b)
		}
		b.looked = false
	}
}

// gather is Send of a sender that gathers.
func (s *Sender) gather(to godwit.NodeID, r *wire.Record) {
	b := &s.batches[to]
	if len(b.recs) == gathered || len(b.vals)+len(r.Vals) > gatheredFloats {
		s.hand(to, b)
	}
	b.vals = append(b.vals, r.Vals...)
	b.recs = append(b.recs, *r) // whose values are the caller's still
	b.recs[len(b.recs)-1].Holders = slices.Clone(r.Holders)
	b.room -= int(CostOf(len(r.Vals)))
}

// hand puts the records of a batch into the queue.
func (s *Sender) hand(to godwit.NodeID, b *batch) {
	s.Keep()
	at := 0
	for i := range b.recs {
		r := &b.recs[i]
		n := len(r.Vals)
		r.Vals = b.vals[at : at+n : at+n]
		at += n
		s.put(to, r)
	}
	b.recs, b.vals = b.recs[:0], b.vals[:0]
	s.look(to, b)
	s.Release()
}

// look has the batch of a peer know how much room the queue has.
func (s *Sender) look(to godwit.NodeID, b *batch) {
	q := &s.keep(to).queue
	b.room = q.leftForCopies(s.ls.Limits.Copies) - int(costOf(len(b.recs), len(b.vals)))
	b.crowded = q.crowded(s.Now())
	b.looked = true
	s.LetGo()
}

// seen returns the batch of a peer, which knows how much room the queue has.
func (s *Sender) seen(to godwit.NodeID) *batch {
	b := &s.batches[to]
	if !b.looked {
		s.look(to, b)
	}
	return b
}
