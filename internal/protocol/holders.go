package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
)

// A holder is what the owner of a key knows of a node that has a replica or waits for
// one. The holders of a key form a ring, in the order in which they came. It has no
// pointers: there may be millions.
type holder struct {
	// seq is the sequence number of the node's last update that the row contains; at
	// first, that of its Interest. A Delta or an End of this number or a smaller one is
	// not added again (R1). Invariant: it only grows while the node is a holder.
	seq uint64

	// version is the version of the node's copy, the node's own updates included. 0: the
	// node must get the whole row. Invariant: version <= Header.Version.
	version godwit.Version

	// full is the version of the last Refresh that brought all of the update rule's
	// state. 0: the next one must. Invariant: full <= version.
	full godwit.Version

	next uint32 // number of the next holder in the ring
	node godwit.NodeID

	marks uint8

	// pace says how often the copy is refreshed. Its low idleBits count the refreshes
	// since the node last showed that it uses its copy, up to maxIdle; the bits above
	// count the rounds to wait before the next refresh.
	pace uint8
}

// marks of a holder.
const (
	unacked = 1 << iota // an update of the holder was added and not acknowledged yet
	lags                // the last Refresh did not bring all of the state
	rough               // the last Refresh was rounded
	wished              // the node's workers did not announce that they use its copy
)

const idleBits = 2

// maxIdle bounds how rarely a holder is refreshed that does not use its copy, to
// once in 2^maxIdle rounds. Copies are asked for before their use, and most uses
// of a copy change it: while none did, each refresh comes after twice as many
// rounds as the one before. So the cost of a copy before its use grows with
// the logarithm of that time only, and it is never staler than half of its age.
const maxIdle = 2

func (x *holder) is(mark uint8) bool { return x.marks&mark != 0 }

// idle returns how often the node was refreshed since it last showed that it uses its copy, up to maxIdle.
func (x *holder) idle() uint8 { return x.pace & (1<<idleBits - 1) }

// used notes that the node uses its copy.
func (x *holder) used() { x.pace = 0 }

// refreshed notes that the node is sent the row, and sets when it will be next.
func (x *holder) refreshed() {
	idle := x.idle()
	x.pace = (1<<idle-1)<<idleBits | min(idle+1, maxIdle)
}

// skips reports whether a round leaves the holder out, and counts the round.
func (x *holder) skips() bool {
	if x.pace < 1<<idleBits {
		return false
	}
	x.pace -= 1 << idleBits
	return true
}

// firstHolder and nextHolder lead through the holders of a key, in their order,
// until they return nil.
func (s *Shard) firstHolder(m *mainSide) *holder {
	if m.holders == 0 {
		return nil
	}
	return s.holders.at(s.holders.at(m.holders).next)
}

func (s *Shard) nextHolder(m *mainSide, x *holder) *holder {
	if x == s.holders.at(m.holders) {
		return nil
	}
	return s.holders.at(x.next)
}

// onlyHolder returns the holder of a main copy, if there is just one.
func (s *Shard) onlyHolder(h *store.Header) *holder {
	if !hasSide(h) {
		return nil
	}
	m := s.main(h)
	if x := s.firstHolder(m); x != nil && s.nextHolder(m, x) == nil {
		return x
	}
	return nil
}

// holder returns what a key's owner knows of a node, nil if the node is no holder.
func (s *Shard) holder(m *mainSide, n godwit.NodeID) *holder {
	for x := s.firstHolder(m); x != nil; x = s.nextHolder(m, x) {
		if x.node == n {
			return x
		}
	}
	return nil
}

// addHolder adds a node that is no holder yet.
func (s *Shard) addHolder(m *mainSide, n godwit.NodeID) *holder {
	i := s.holders.take()
	x := s.holders.at(i)
	x.node, x.next = n, i
	if m.holders != 0 {
		last := s.holders.at(m.holders)
		x.next, last.next = last.next, i
	}
	m.holders = i
	return x
}

// dropHolder removes a node, which must be a holder.
func (s *Shard) dropHolder(m *mainSide, n godwit.NodeID) {
	before := m.holders
	for s.holders.at(s.holders.at(before).next).node != n {
		before = s.holders.at(before).next
	}
	b := s.holders.at(before)
	i := b.next
	b.next = s.holders.at(i).next
	switch {
	case i == before:
		m.holders = 0
	case i == m.holders:
		m.holders = before
	}
	s.holders.give(i)
}

// dropHolders removes all holders.
func (s *Shard) dropHolders(m *mainSide) {
	if m.holders == 0 {
		return
	}
	for i := s.holders.at(m.holders).next; ; {
		next := s.holders.at(i).next
		s.holders.give(i)
		if i == m.holders {
			break
		}
		i = next
	}
	m.holders = 0
}
