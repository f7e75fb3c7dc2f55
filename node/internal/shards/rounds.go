package shards

import (
	"fmt"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/node/internal/link"
)

// This file is what sync rounds, and those that look at a node from outside, do with
// all shards.

// Idle reports whether no shard has something to send in a round.
func (s *Set) Idle() bool {
	for i := range s.work {
		if s.work[i].Load() != 0 {
			return false
		}
	}
	return true
}

// Shards returns how many shards there are.
func (s *Set) Shards() int { return len(s.shards) }

// HasWork reports whether a shard has something to send in a round.
func (s *Set) HasWork(i int) bool { return s.work[i/64].Load()&(1<<(i%64)) != 0 }

// Round has a shard send what is new (protocol.Shard.Round). It reports whether something had to stay, for want of room.
func (s *Set) Round(i int, out *link.Sender, all, bounded bool) (held bool) {
	return s.round(i, out, func(x *protocol.Shard) bool { return x.Round(out, all, bounded) })
}

// RoundUp is Round of updates of replicas alone.
func (s *Set) RoundUp(i int, out *link.Sender) (held bool) {
	return s.round(i, out, func(x *protocol.Shard) bool { return x.RoundUp(out) })
}

func (s *Set) round(i int, out *link.Sender, send func(x *protocol.Shard) bool) (held bool) {
	word, bit := &s.work[i/64], uint64(1)<<(i%64)
	word.And(^bit)
	x := &s.shards[i]
	x.Lock()
	defer x.Unlock()
	if x.over() {
		return false
	}
	x.noted = false
	out.Gather()
	held = send(x.Shard)
	out.GatherEnd()
	if x.Work() {
		x.noted = true
		s.rounds.Ring()
	}
	if x.noted || x.Parked() { // nobody needs to hurry for that: a round for all comes when it is asked for
		word.Or(bit)
	}
	return held
}

// AskDue asks for keys that there was no room to ask for before.
func (s *Set) AskDue(out *link.Sender) {
	s.WithEach(func(x *protocol.Shard) {
		if x.Due() {
			x.AskDue(out)
		}
	})
}

// A Flush is updates of this node's replicas that are on their way to the main copies.
type Flush []flushing

type flushing struct {
	set *Set
	k   godwit.Key // of the shard
	f   protocol.Flush
}

// arrived reports whether all of it has. What is to be sent only now is work for the next round.
func (f *flushing) arrived() bool {
	x := f.set.shard(f.k)
	x.Lock()
	defer x.Unlock()
	ok := x.Flushed(&f.f)
	f.set.noteWork(x, f.k)
	return ok
}

// BeginFlush has all updates sent that replicas here have.
func (s *Set) BeginFlush() Flush {
	f := make(Flush, len(s.shards))
	for i := range s.shards {
		x := &s.shards[i]
		x.Lock()
		f[i] = flushing{s, godwit.Key(i), x.BeginFlush()}
		s.noteWork(x, godwit.Key(i))
		x.Unlock()
	}
	return f
}

// BeginSettle is BeginFlush of tables with bounded staleness. It uses the memory of f.
func (s *Set) BeginSettle(f Flush) Flush {
	f = f[:0]
	for i := range s.shards {
		x := &s.shards[i]
		x.Lock()
		if settle := x.BeginSettle(); !x.Flushed(&settle) {
			f = append(f, flushing{s, godwit.Key(i), settle})
			s.noteWork(x, godwit.Key(i))
		}
		x.Unlock()
	}
	return f
}

// Len returns how many updates of replicas a flush waits for.
func (f Flush) Len() (updates int) {
	for i := range f {
		updates += f[i].f.Len()
	}
	return updates
}

// Arrived reports whether all of a flush has arrived. It looks no further than to the
// first shard of which something has not.
func (f Flush) Arrived() bool {
	for i := range f {
		if !f[i].arrived() {
			return false
		}
	}
	return true
}

// Left returns what of a flush has not arrived.
func (f Flush) Left() Flush {
	return slices.DeleteFunc(f, func(x flushing) bool { return x.arrived() })
}

// Totals are what the shards did so far and hold, summed.
type Totals struct {
	protocol.Stats
	Rows            int // all that are here, also while a key is on its way
	Owned, Replicas int // keys
	Memory          protocol.Memory
}

// Totals takes stock.
func (s *Set) Totals() (t Totals) {
	for i := range s.shards {
		x := &s.shards[i]
		x.Lock()
		did, memory := x.Stats, x.Memory()
		rows, owned, replicas := x.Len()
		x.Unlock()
		t.Rows += rows
		t.Owned += owned
		t.Replicas += replicas
		t.Memory.Add(memory)
		t.add(&did)
	}
	return t
}

func (t *Totals) add(did *protocol.Stats) {
	t.MovesIn += did.MovesIn
	t.Copies += did.Copies
	t.Drops += did.Drops
	t.Deltas += did.Deltas
	t.Clipped += did.Clipped
	t.RoundedIn += did.RoundedIn
	t.RoundedOut += did.RoundedOut
	t.Refreshes += did.Refreshes
	t.Forwards += did.Forwards
	t.Learned += did.Learned
	t.Kept += did.Kept
	t.MaxHops = max(t.MaxHops, did.MaxHops)
	t.LeadActions += did.LeadActions
	t.LeadNanos += did.LeadNanos
	t.Leads.Add(&did.Leads)
	t.Waited += did.Waited
	t.Refused += did.Refused
	t.MovesOut += did.MovesOut
	t.Acks += did.Acks
	t.Stale += did.Stale
}

// Holding returns what is here of a key at this moment. The row is the node's own
// memory, so this is for simulated nodes, where nothing else runs.
func (s *Set) Holding(k godwit.Key) protocol.Holding {
	x := s.shard(k)
	x.Lock()
	defer x.Unlock()
	if x.closed {
		return protocol.Holding{State: "absent"}
	}
	return x.Holding(k)
}

// Owner returns who owns a key, as this node, its home, knows.
func (s *Set) Owner(k godwit.Key) (owner godwit.NodeID) {
	owner = s.proto.Self
	s.With(k, func(x *protocol.Shard) {
		if o, away := x.Away(k); away {
			owner = o
		}
	})
	return owner
}

// Resting says what the shards have left to do, or forgot; nil if nothing.
func (s *Set) Resting() error {
	for i := range s.shards {
		x := &s.shards[i]
		x.Lock()
		err := x.Resting()
		x.Unlock()
		if err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
	}
	return nil
}
