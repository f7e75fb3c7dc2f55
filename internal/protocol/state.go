package protocol

import (
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/placement"
)

// This file is the state machine of a key at a node. Nothing else writes the state of a
// row. docs/life-of-a-key.md draws it; TestThePictureOfAKeysLifeIsTheCode compares the
// two.
//
// Each transition is a function that is named after the state that it leads to. It says
// which states it leads from and what else must hold before, and panics if that does not
// hold: then this package has a fault. What other nodes send is checked before.

// A state says what a node holds of a key.
type state uint8

const (
	absent      state = iota // nothing
	placeholder              // no row yet: the key was asked for, or will be when there is room
	owner                    // the main copy
	tentative                // the main copy, just received; other nodes' requests wait for Drained
	frozen                   // the former main copy: handed over, kept until Release

	// The states of a replica. All can be read.
	fresh    // contains no update that the owner lacks
	dirty    // has updates that were not sent yet; none is in flight
	inFlight // an update or a Set was sent and is not acknowledged; there may be more to send
	draining // the last updates were sent with End; writes wait, until Dropped
)

var stateNames = [...]string{"absent", "placeholder", "owner", "tentative", "frozen", "fresh", "dirty", "in flight", "draining"}

func (s state) String() string { return stateNames[s] }

func (s state) isMain() bool    { return owner <= s && s <= frozen }
func (s state) isReplica() bool { return s >= fresh }

// role returns the state's name for observers of the shard, for whom all states of a
// replica are one.
func (s state) role() string {
	if s.isReplica() {
		return "replica"
	}
	return s.String()
}

// Header.Meta has the state in its low bits, above them the row's mark, then whether it is saved, whether pushes are
// noted, and above that the number of the side, or, with countedBit, how many intents there are for the key of
// a row that has no side.
const (
	stateBits  = 4
	stateMask  = 1<<stateBits - 1
	savedBit   = OddMark << 1
	notedBit   = OddMark << 2
	sideShift  = stateBits + 3
	countedBit = 1 << 31
)

func stateOf(h *store.Header) state { return state(h.Meta & stateMask) }

// mark gives a row a mark (cut.go).
func (s *Shard) mark(h *store.Header, m Mark) { h.Meta = h.Meta&^uint32(OddMark) | uint32(m) }

// setSaved notes whether a row, or a copy for a cut, is as it was when it was last handed over (cut.go).
func (s *Shard) setSaved(h *store.Header, saved bool) {
	setFlag(h, uint32(savedBit), saved)
}

func setFlag(h *store.Header, flag uint32, on bool) {
	h.Meta &^= flag
	if on {
		h.Meta |= flag
	}
}

// setNoted notes whether the side has all that it is to have of one more push to the row: the next round takes the row anyhow, be it to
// its holders or to its owner, and no write waits. Such a push, if it has the row's mark, needs the row alone (Update.Push).
// A change of the state ends that.
func (s *Shard) setNoted(h *store.Header, noted bool) {
	setFlag(h, uint32(notedBit), noted)
}

// enter changes the state of a row. Only the functions of this file call it.
func (s *Shard) enter(h *store.Header, to state) {
	from := stateOf(h)
	h.Meta = h.Meta&^(stateMask|uint32(notedBit)) | uint32(to)
	s.held[from]--
	s.held[to]++
	if s.cfg.Observe != nil {
		s.cfg.Observe(h.Key, from.String(), to.String())
	}
}

// require panics if what must hold before a transition does not.
func (s *Shard) require(holds bool, h *store.Header, to state, what string) {
	if !holds {
		s.fault(h, to, what)
	}
}

// fault panics, except in tests that break rules of the protocol: there, something else
// is to notice.
func (s *Shard) fault(h *store.Header, to state, what string) {
	if s.cfg.Broken == (Broken{}) {
		panic(fmt.Sprintf("protocol: node %d: key %d cannot become %v from %v: %s", s.cfg.Self, h.Key, to, stateOf(h), what))
	}
}

// becomeOwner makes a row the main copy: of a key that nobody has touched, or of one
// that moved here, when the old owner has passed on everything.
func (s *Shard) becomeOwner(h *store.Header) {
	st := stateOf(h)
	s.require(st == absent && !hasSide(h) || st == tentative, h, owner, "it must be new or tentative")
	s.enter(h, owner)
}

// becomeFrozen makes the main copy the former one, after the row and its holders have
// been sent to the new owner.
func (s *Shard) becomeFrozen(h *store.Header, successor godwit.NodeID) {
	s.require(stateOf(h) == owner, h, frozen, "it must be the confirmed owner (M4)")
	s.require(successor != s.cfg.Self, h, frozen, "the new owner must be another node")
	s.clearSide(h)
	s.enter(h, frozen)
	s.main(h).successor = successor
}

// becomePlaceholder makes the placeholder of a key that is about to be asked for.
func (s *Shard) becomePlaceholder(k godwit.Key, ask placement.Ask, now int64) *store.Header {
	h := s.st.Header(s.insert(k))
	s.require(ask != placement.Nothing, h, placeholder, "something must be asked for")
	s.sideOf(h)
	s.enter(h, placeholder)
	*s.placeholder(h) = placeholderSide{since: now, ask: ask, askedOf: godwit.NoNode}
	return h
}

// becomeTentative makes a row the main copy that a Transfer brought. The row has been
// written.
func (s *Shard) becomeTentative(h *store.Header, epoch godwit.Epoch, version godwit.Version) {
	switch st := stateOf(h); {
	case st == placeholder:
		s.require(s.placeholder(h).askedOf == godwit.NoNode, h, tentative, "the row must no longer count as asked for")
	default:
		s.require(st == absent || st.isReplica(), h, tentative, "there must be no main copy here (M1)")
	}
	s.sideOf(h)
	s.clearSide(h)
	s.enter(h, tentative)
	h.Epoch, h.Version = epoch, version
}

// becomeReplica makes a placeholder a fresh replica. The row and sub have been written.
func (s *Shard) becomeReplica(h *store.Header, sub store.Ref, epoch godwit.Epoch, version godwit.Version) {
	p := *s.placeholder(h)
	s.require(p.first != 0, h, fresh, "an Interest must have been sent (R3)")
	s.require(p.askedOf == godwit.NoNode, h, fresh, "the row must no longer count as asked for")
	s.clearSide(h)
	s.enter(h, fresh)
	*s.replica(h) = replicaSide{first: p.first, sub: sub}
	h.Epoch, h.Version = epoch, version
}

// becomeFresh makes a replica one that contains no update that the owner lacks.
func (s *Shard) becomeFresh(h *store.Header) {
	s.require(stateOf(h) == dirty || stateOf(h) == inFlight, h, fresh, "it must be dirty or in flight")
	d := s.side(h).replica()
	s.require(d.unsent == none && d.sent == 0 && !d.flight.present(), h, fresh, "no update may be left")
	s.enter(h, fresh)
}

// becomeDirty makes a replica one that has updates that were not sent yet, and none in
// flight.
func (s *Shard) becomeDirty(h *store.Header) {
	s.require(stateOf(h) == fresh || stateOf(h) == inFlight, h, dirty, "it must be fresh or in flight")
	d := s.side(h).replica()
	s.require(d.unsent != none && d.sent == 0 && !d.flight.present(), h, dirty, "it must have updates, and none in flight")
	s.enter(h, dirty)
}

// becomeInFlight takes the next sequence number for a replica's update or Set, which is
// sent next. The update's difference is in flight.
func (s *Shard) becomeInFlight(h *store.Header) {
	s.fly(h, inFlight)
}

// becomeDraining takes the next sequence number for a replica's last update, which is
// sent with an End next.
func (s *Shard) becomeDraining(h *store.Header) {
	s.require(s.side(h).want == 0, h, draining, "no intent may want the replica")
	s.require(s.side(h).replica().unsent == none, h, draining, "the update must contain all that was not sent")
	s.fly(h, draining)
}

func (s *Shard) fly(h *store.Header, to state) {
	s.require(stateOf(h) == fresh || stateOf(h) == dirty, h, to, "one update may be in flight")
	d := s.side(h).replica()
	s.require(d.unsent == none || d.side != markOf(h), h, to, "the update must contain all that was not sent from one side of a cut")
	s.require(!d.parting.present() && !d.rest.present(), h, to, "the update must contain all that was not sent from before a cut")
	s.seq++
	d.sent = s.seq
	s.enter(h, to)
}

// becomeAbsent removes a row: a placeholder that is refused or no longer wanted, a former
// main copy that is released, or a replica that is drained. Requests that wait for the
// key must have been taken out of the queue.
func (s *Shard) becomeAbsent(h *store.Header) {
	st := stateOf(h)
	s.require(st == placeholder || st == frozen || st == draining, h, absent, "it must be a placeholder, frozen or draining")
	s.require(s.side(h).queue == 0, h, absent, "no request may wait")
	s.dropSide(h)
	s.enter(h, absent)
	s.remove(h.Key)
}
