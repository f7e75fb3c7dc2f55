package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/vec"
)

// A Place says where an access was served.
type Place uint8

const (
	Elsewhere Place = iota // not here; nothing was done
	AtOwner                // at the main copy
	AtReplica              // at a replica
)

// Finder returns the finder of the shard's rows. It may be used without the
// shard's lock, for ReadOptimistic, Update, PullAt and PushAt.
func (s *Shard) Finder() *store.Finder { return s.st.Finder() }

// ReadOptimistic copies the value of a key to dst if the row that was found for it
// holds a readable copy. It is the read side of a sequence lock: the caller need not
// hold the shard's lock, but must verify afterwards that nobody held it meanwhile
// (package node counts that). If somebody did, dst and the result are meaningless. dst
// has the value's length, or the row's to get the state, too: see [godwit.Querier].
func ReadOptimistic(h *store.Header, k godwit.Key, dst []float32) Place {
	if h == nil || h.Key != k {
		return Elsewhere
	}
	p := Elsewhere
	switch st := stateOf(h); {
	case st == owner:
		p = AtOwner
	case st.isReplica():
		p = AtReplica
	default:
		return p
	}
	preempt.Copy(dst, store.FloatsAt(h, len(dst)))
	return p
}

// PullAt copies the value of a key to dst if it can be read here and now. h is the row that
// a Finder returned for the key; it may be nil or another key's.
func (s *Shard) PullAt(h *store.Header, k godwit.Key, dst []float32) Place {
	if h = s.at(h, k); h == nil {
		return Elsewhere
	}
	p := s.readable(h)
	if p != Elsewhere {
		s.read(h, dst)
	}
	return p
}

// at returns the row of a key, nil if there is none. h is what a Finder returned for it.
func (s *Shard) at(h *store.Header, k godwit.Key) *store.Header {
	if h != nil && h.Key == k && stateOf(h) != absent {
		return h
	}
	r, ok := s.find(k)
	if !ok {
		return nil
	}
	return s.st.Header(r)
}

// PushAt applies the key's update rule if the key can be written here and now, for a worker
// whose pushes have a mark. h is the row that a Finder returned for the key; it may be nil or
// another key's.
func (s *Shard) PushAt(h *store.Header, k godwit.Key, push []float32, m Mark) Place {
	if h = s.at(h, k); h == nil {
		return Elsewhere
	}
	p := s.writable(h)
	switch p {
	case AtOwner:
		s.apply(h, push, m)
	case AtReplica:
		s.applyReplica(h, push, m)
	}
	return p
}

// update applies a push to a copy of a row, and to another one, if there is any.
func (s *Shard) update(h *store.Header, push []float32, too []float32) {
	i, _ := s.cfg.Model.Locate(h.Key)
	u := &s.cfg.updates[i]
	u.apply(store.FloatsAt(h, u.len), push)
	if too != nil {
		u.apply(too, push)
	}
}

// An Update is how pushes change the rows of a table.
type Update struct {
	rule     godwit.Rule
	adds     bool           // rule is godwit.Add, which has a faster way
	query    godwit.Querier // makes what pulls get; nil: they get the value
	dim, len int            // floats of a value, of a row

	rounding  *rounding // of vectors that travel alone; nil: none
	roundable bool      // what travels may be rounded where bytes bound the network
}

func newUpdate(m *godwit.Model, table int, seed uint64) Update {
	t := m.Table(table)
	_, adds := t.Rule.(godwit.Add)
	query, _ := t.Rule.(godwit.Querier)
	return Update{t.Rule, adds, query, t.Dim, m.TableRowLen(table), newRounding(m, table, seed), t.MayRound()}
}

// Update returns how pushes change the rows of a table.
func (c *Config) Update(table int) *Update { return &c.updates[table] }

func (u *Update) apply(row, push []float32) {
	if u.adds {
		vec.Add(row[:u.dim], push)
		return
	}
	// What a rule appends to either is no part of the row, nor of the next vector.
	u.rule.Apply(row[:u.dim:u.dim], row[u.dim:u.len:u.len], push[:u.dim:u.dim])
}

// Push is Shard.PushAt for the common cases: the row that was found for the key has the mark of the push, has changed since
// it was saved, and is its main copy without a side, or a copy whose side has noted all of the push (Shard.setNoted). Otherwise it does
// nothing and returns Elsewhere.
// The lock of the key's shard must be held.
func (u *Update) Push(h *store.Header, k godwit.Key, push []float32, m Mark) Place {
	if h == nil || h.Key != k {
		return Elsewhere
	}
	p := AtOwner
	switch h.Meta&(1<<sideShift-1) ^ uint32(m) {
	case uint32(owner) | uint32(notedBit):
	case uint32(owner):
		if hasSide(h) {
			return Elsewhere
		}
	case uint32(dirty) | uint32(notedBit), uint32(inFlight) | uint32(notedBit):
		p = AtReplica
	default:
		return Elsewhere
	}
	u.apply(store.FloatsAt(h, u.len), push)
	if p == AtOwner {
		h.Version++
	}
	return p
}

func (s *Shard) readable(h *store.Header) Place {
	switch st := stateOf(h); {
	case st == owner:
		return AtOwner
	case st.isReplica():
		return AtReplica
	case st == tentative && s.first(h):
		return AtOwner
	}
	return Elsewhere
}

// first reports whether an access of this node to a tentative row overtakes no earlier
// access of this node: none is on the network, and none waits here.
func (s *Shard) first(h *store.Header) bool {
	if s.cfg.Broken.OvertakeOwn {
		return true
	}
	if *s.remoteOf(h.Key) != 0 {
		return false
	}
	first := true
	if hasSide(h) {
		s.each(s.side(h).queue, func(i uint32) bool {
			w := s.waiters.at(i)
			first = w.origin != s.cfg.Self || !ask(w.kind)
			return first
		})
	}
	return first
}

func (s *Shard) writable(h *store.Header) Place {
	p := s.readable(h)
	if p == AtReplica && s.closed(h) && !s.cfg.Broken.WriteDraining {
		return Elsewhere
	}
	return p
}

// apply applies a push to the main copy.
func (s *Shard) apply(h *store.Header, push []float32, m Mark) {
	s.update(h, push, s.turn(h, m))
	s.touch(h)
}

// touch notes that the main copy changed.
func (s *Shard) touch(h *store.Header) {
	h.Version++
	if hasSide(h) {
		s.markChanged(h)
	}
}

// markChanged puts a main copy on the list of the next sync round if a holder may
// lack something. The row has a side.
func (s *Shard) markChanged(h *store.Header) {
	m := s.side(h).main()
	if m.holders != 0 && !m.changed {
		m.changed = true
		s.changed = append(s.changed, h.Key)
	}
	s.setNoted(h, m.changed)
}

// applyReplica applies a push to a replica. The change goes to the owner
// with a later sync round.
func (s *Shard) applyReplica(h *store.Header, push []float32, m Mark) {
	s.update(h, push, s.turnReplica(h, m))
	s.markUnsent(h)
}

// markUnsent notes that a replica was pushed to: the next round sends the update, or,
// while another one is in flight, the round after its acknowledgement.
func (s *Shard) markUnsent(h *store.Header) {
	d := s.side(h).replica()
	d.uses++
	d.used()
	if d.unsent < due {
		s.makeDue(h, d)
	}
	s.setNoted(h, !s.learner.Has(h.Key)) // of what was learned, uses count
}

// makeDue has the next round send the updates of a replica.
func (s *Shard) makeDue(h *store.Header, d *replicaSide) {
	d.unsent = due
	s.unsettle(h)
	if stateOf(h) == fresh {
		s.becomeDirty(h)
	}
	if stateOf(h) == dirty || s.cfg.Broken.ManyInFlight {
		s.dirty = append(s.dirty, h.Key)
	}
}

// Work reports whether a sync round has something to do in this shard.
func (s *Shard) Work() bool { return len(s.dirty)+len(s.leaving)+len(s.changed)+len(s.roughs) > 0 }

// Parked reports whether a round for all holders has more to do than Work says: some rest, and lack something.
func (s *Shard) Parked() bool { return len(s.parked[0])+len(s.parked[1]) > 0 }

// Due reports whether there are keys that had to wait for room to be asked for.
func (s *Shard) Due() bool { return len(s.due) > 0 }
