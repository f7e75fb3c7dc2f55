package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/store"
)

// A Place says where an access was served.
type Place uint8

const (
	Elsewhere Place = iota // not here; nothing was done
	AtOwner                // at the main copy
	AtReplica              // at a replica
)

// Pull copies the value of a key to dst if it can be read here and now.
func (s *Shard) Pull(k godwit.Key, dst []float32) Place {
	r, ok := s.find(k)
	if !ok {
		return Elsewhere
	}
	p := s.readable(s.st.Header(r))
	if p != Elsewhere {
		copy(dst, s.st.Floats(r))
	}
	return p
}

// Push applies the key's update rule if the key can be written here and now.
func (s *Shard) Push(k godwit.Key, push []float32) Place {
	r, ok := s.find(k)
	if !ok {
		return Elsewhere
	}
	h := s.st.Header(r)
	switch p := s.writable(h); p {
	case AtOwner:
		s.apply(h, r, push)
		return p
	case AtReplica:
		s.applyReplica(h, r, push)
		return p
	}
	return Elsewhere
}

func (s *Shard) readable(h *store.Header) Place {
	switch stateOf(h) {
	case owner:
		return AtOwner
	case tentative:
		if s.first(h) {
			return AtOwner
		}
	case replica:
		return AtReplica
	}
	return Elsewhere
}

// first reports whether an access of this node to a tentative row overtakes
// none that this node began before: none is on the network, none waits here.
func (s *Shard) first(h *store.Header) bool {
	if s.cfg.Broken.OvertakeOwn {
		return true
	}
	if *s.away(h.Key) != 0 {
		return false
	}
	queue := s.side(h).queue
	for i := range queue {
		if queue[i].Origin == s.cfg.Self && ask(queue[i].Kind) {
			return false
		}
	}
	return true
}

func (s *Shard) writable(h *store.Header) Place {
	p := s.readable(h)
	if p == AtReplica && s.side(h).closed() && !s.cfg.Broken.WriteDraining {
		return Elsewhere
	}
	return p
}

// apply applies a push to the main copy.
func (s *Shard) apply(h *store.Header, r store.Ref, push []float32) {
	value, state, rule := s.parts(h.Key, s.st.Floats(r))
	rule.Apply(value, state, push)
	s.touch(h)
}

// touch notes that the main copy changed.
func (s *Shard) touch(h *store.Header) {
	h.Version++
	if h.Meta>>stateBits != 0 {
		s.markChanged(h, s.side(h))
	}
}

// markChanged puts the row on the list of the next sync round if a holder may
// lack something.
func (s *Shard) markChanged(h *store.Header, d *side) {
	if len(d.holders) > 0 && !d.changed {
		d.changed = true
		s.changed = append(s.changed, h.Key)
	}
}

// applyReplica applies a push to a replica. What it changed goes to the owner
// with a later sync round.
func (s *Shard) applyReplica(h *store.Header, r store.Ref, push []float32) {
	value, state, rule := s.parts(h.Key, s.st.Floats(r))
	rule.Apply(value, state, push)
	s.markDirty(h, s.side(h))
}

func (s *Shard) markDirty(h *store.Header, d *side) {
	if !d.dirty {
		d.dirty = true
		if d.sent == 0 || s.cfg.Broken.ManyInFlight {
			s.dirty = append(s.dirty, h.Key)
		}
	}
}

// Work reports whether a sync round has something to do in this shard.
func (s *Shard) Work() bool { return len(s.dirty) > 0 || len(s.changed) > 0 }
