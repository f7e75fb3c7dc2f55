package protocol

import (
	"cmp"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
)

// This file is how replicas stay that no intent wants, under a policy that asks for what is announced step by step: they are idle.
// (docs/decisions/095-idle-replicas.md says what was measured.)
// A key that steps use with pauses would be given up and set up again for each use, which takes four records, and makes a worker wait that
// is not far ahead. A replica that is not changed by others costs nothing, so it is not time that ends it, but refreshes.

const (
	// mostUnused is after how many refreshes that no use followed a replica goes. They come after 1, 2, and then 4 rounds in which
	// the row changed. Setting a copy up takes 4 records and the time of a round trip, in which a node sends and takes some hundred.
	mostUnused = 16

	// idleBytes is how much memory the idle replicas of a node may take in any case. There may be as many as it has main copies.
	idleBytes = 64 << 20
)

// mostIdle returns how many replicas may be idle, if they are as long as those of a key.
func (s *Shard) mostIdle(k godwit.Key) int {
	least := cmp.Or(s.cfg.Idle, idleBytes)
	if least < 0 {
		return 0
	}
	return max(least>>s.cfg.Shift/(2*4*s.cfg.Model.RowLen(k)), s.held[owner])
}

// idles makes a replica idle whose last intent has ended, if it may be, and reports whether it is.
func (s *Shard) idles(h *store.Header) bool {
	if !s.cfg.ahead || stateOf(h) == draining || s.learner.Has(h.Key) || s.idle >= s.mostIdle(h.Key) {
		return false
	}
	d := s.replica(h)
	if d.unused() >= mostUnused {
		return false
	}
	d.stay |= idle
	s.idle++
	s.setWants(h, 1)
	return true
}

// holdsIdle reports whether a main copy has one holder, which has got refreshes since it last showed that it uses its replica: that may be
// idle, and the key should not move to who does not use it.
func (s *Shard) holdsIdle(h *store.Header) bool {
	x := s.onlyHolder(h)
	return s.cfg.ahead && x != nil && x.idle() > 1
}

// Idle reports whether a key has an idle replica here.
func (s *Shard) Idle(k godwit.Key) bool { return s.replicaOf(k).is(idle) }

// endIdle notes that a key is used, or moves here. Its replica, if it was idle, no longer counts as an intent.
func (s *Shard) endIdle(h *store.Header) {
	if !stateOf(h).isReplica() {
		return
	}
	d := s.replica(h)
	d.used()
	if d.is(idle) {
		d.stay &^= idle
		s.idle--
		s.setWants(h, s.wants(h)-1)
	}
}

// idled notes that a refresh came for a replica, and gives it up if it is idle and was not used for long.
func (s *Shard) idled(out Out, h *store.Header, ref store.Ref) {
	if st := stateOf(h); !st.isReplica() || st == draining {
		return
	}
	s.setNoted(h, false) // the next push is a use
	if d := s.replica(h); d.refreshed() >= mostUnused && d.is(idle) {
		s.endIdle(h)
		s.drain(out, h, ref)
	}
}
