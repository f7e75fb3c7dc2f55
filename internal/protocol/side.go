package protocol

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/placement"
)

// A side is the side record of a row: everything about a key beside the row and its
// header. A row has one in every state but owner and tentative; there it has one while
// another node holds a replica, or a request waits. The header counts the intents for
// the key of a row without a side.
//
// A side fills one line of the processor's cache and has no pointers: there may be
// millions. Holders and waiters are known by their numbers.
type side struct {
	// want counts the active intents of this node's workers for the key, and Hold:
	// see wants. Any state; it goes with the key from state to state. In fresh and dirty it is not
	// 0: a replica that nobody wants drains as soon as no update is in flight. An idle replica counts as one intent.
	want uint32

	// queue is the number of the last waiter; 0: no request waits here. Any state but
	// absent. Who waits: in placeholder, requests of this node; in tentative, requests of
	// other nodes, and those of this node that must not overtake earlier ones; in
	// frozen, this node's Localize; in inFlight, a Set and writes behind it; in draining,
	// writes. Invariant: 0 in owner, fresh and dirty, except while they are served.
	queue uint32

	// part is the rest, which depends on the state of the row: a mainSide in owner,
	// tentative and frozen, a placeholderSide in placeholder, a replicaSide in the states
	// of a replica. A transition that changes the kind begins it anew (state.go), so
	// nothing of a former state is left.
	part [7]uint64
}

// A mainSide is the side of a main copy: owner, tentative, frozen.
type mainSide struct {
	// holders is the number of the last holder; 0: no other node holds a replica.
	// owner, tentative. The holders travel with the key: 0 in frozen.
	holders uint32

	// successor is the new owner, to which requests are passed on. frozen.
	successor godwit.NodeID

	// ask is what to ask the new owner for when this row is released; Nothing: the row
	// is forgotten. frozen; it counts only if want > 0. Nothing in owner and tentative.
	ask placement.Ask

	// changed says that the key is in Shard.changed, because a holder may lack something.
	// owner, tentative. (Shard.changed may also have keys that are in other states by now.)
	changed bool

	// rough says that the key is in Shard.roughs, because a holder may have a rounded row.
	// owner, tentative. (Shard.roughs may also have keys that are in other states by now.)
	rough bool

	// parked says that the key is in Shard.parked, because a holder that rests may lack something.
	// owner, tentative. (Shard.parked may also have keys that are in other states by now.)
	parked bool
}

// A placeholderSide is the side of a key that was asked for, or waits to be.
type placeholderSide struct {
	// since is when the key was wanted, in nanoseconds of Out.Now: for lead times.
	since int64

	// first is the sequence number of the Interest that was sent; 0: none was. It becomes
	// the first of the replica.
	first uint64

	// askedOf is the node of which one row counts as asked for (Out.Ask); NoNode: none
	// does, because there was no room to ask, or only a worker's Localize asked.
	askedOf godwit.NodeID

	// ask is what is asked for. Invariant: not Nothing.
	ask placement.Ask

	// due says that the key is in Shard.due: there was no room to ask for it.
	due bool
}

// A replicaSide is the side of a replica: fresh, dirty, inFlight, draining. The row
// contains all updates of this node's workers. Invariant: row = sub, and what was not
// sent yet (unsent) on top of it.
type replicaSide struct {
	// first is the sequence number of the Interest that this replica answers. Records of
	// smaller numbers are for a former replica of this node (R3). Invariant: not 0.
	first uint64

	// sent is the sequence number of the update (Delta, End) or Set in flight. Invariant:
	// not 0 in inFlight and draining, 0 in fresh and dirty. At most one is in flight.
	sent uint64

	// acked is the largest sequence number that the owner acknowledged; 0: none yet.
	acked uint64

	// sub is the row without the updates that were not sent yet: the owner's row as of
	// the last exchange, the update in flight included.
	sub store.Ref

	// flight is the difference that the update in flight makes, or what the Set in
	// flight will overwrite. inFlight, draining; there it may be absent: a Set or an End
	// need not make a difference. Absent in fresh and dirty.
	flight spareRow

	// parting is the row without the updates that were made after the cut under way, if there
	// are updates from before it that were not sent yet, and perhaps some from after it; else
	// absent. The next update is those from before it (cut.go).
	parting spareRow

	// rest is what rounding took off the last update of a table with a Merger, packed.
	// The row and sub contain it; it is added to the next update. Present only if unsent
	// is not none.
	rest spareRow

	// uses counts accesses of this node's workers, since Shard.takeUses: of a key with a wish of the learner all of its
	// pushes, and what Shard.Used was told of its pulls.
	uses uint32

	// mean is the mean norm of the updates that were sent, over means of them, at most
	// known. Only if the policy clips updates (limit.go).
	mean  float32
	side  Mark // of the update in flight: see cut.go
	means uint8

	// unsent says what becomes of the updates that were not sent yet. Invariant: none in
	// fresh and draining, not none in dirty, either in inFlight.
	unsent unsent

	// passed says whether updates are overtaken by some that were made later: those go first,
	// as they are from before a cut. The update that ends a flush is then the one after.
	passed passed

	// listed says by which pass over it the key was found in Shard.unsettled last (Shard.listing, plus 1); 0: it
	// is not there. It is there from the first update until some time after its acknowledgement.
	listed uint8

	stay stay
}

// A stay says why a replica that nobody wants is here: flags, and above them for how many refreshes it was not used.
type stay uint8

const (
	leaving stay = 1 << iota // the key is in Shard.leaving
	idle                     // no intent wants the replica, and it stays (idle.go)
	unused                   // the count's one
)

func (d *replicaSide) is(flag stay) bool { return d != nil && d.stay&flag != 0 }

// used notes that the node uses its replica.
func (d *replicaSide) used() { d.stay &= leaving | idle }

// refreshed notes that a refresh came, and returns for how many the replica was not used.
func (d *replicaSide) refreshed() int {
	if d.stay <= math.MaxUint8-unused {
		d.stay += unused
	}
	return d.unused()
}

func (d *replicaSide) unused() int { return int(d.stay / unused) }

// An unsent says whether a replica has updates that were not sent yet, and when they go.
type unsent uint8

const (
	none  unsent = iota // there are none
	held                // they stay for now: too small for the policy's limits, or left by rounding
	due                 // the next round sends them; in dirty, the key is in Shard.dirty
	exact               // as due, whatever their size, and not rounded: a flush waits for them
)

// A passed says how far updates have come that others overtook.
type passed uint8

const (
	noPassed passed = iota // there are none
	notSent
	sent
)

// A spareRow is a row of the store without a key, or none: its reference plus 1.
type spareRow store.Ref

func (r spareRow) present() bool { return r != 0 }

// addSpare returns a spare row of the same length as another.
func (s *Shard) addSpare(like store.Ref) spareRow {
	return spareRow(s.st.Spare(s.st.ClassOf(like)) + 1)
}

// floats returns the floats of a spare row, nil if there is none.
func (s *Shard) floats(r spareRow) []float32 {
	if r == 0 {
		return nil
	}
	return s.st.Floats(store.Ref(r - 1))
}

// dropSpare frees a spare row, if there is one.
func (s *Shard) dropSpare(r *spareRow) {
	if *r != 0 {
		s.st.Free(store.Ref(*r - 1))
		*r = 0
	}
}

// hasSide reports whether a row has a side: the top bit of Header.Meta is not set, and
// what is above sideShift is not 0.
func hasSide(h *store.Header) bool { return int32(h.Meta) >= 1<<sideShift }

// mostCounted is how many intents a header can count.
const mostCounted = countedBit>>sideShift - 1

// counted returns how many intents a row's header counts.
func counted(h *store.Header) uint32 {
	if h.Meta&countedBit == 0 {
		return 0
	}
	return h.Meta &^ countedBit >> sideShift
}

// wants returns how many active intents of this node's workers there are for the row's key,
// Hold included. Pulls and pushes do not ask for that number, so a key that is here alone and
// announced needs no side: they take the same short way as others.
func (s *Shard) wants(h *store.Header) uint32 {
	if hasSide(h) {
		return s.side(h).want
	}
	return counted(h)
}

// setWants sets what wants returns.
func (s *Shard) setWants(h *store.Header, n uint32) {
	if hasSide(h) || n > mostCounted {
		s.sideOf(h).want = n
		return
	}
	h.Meta &= 1<<sideShift - 1
	if n > 0 {
		h.Meta |= countedBit | n<<sideShift
	}
}

// side returns the row's side. There must be one.
func (s *Shard) side(h *store.Header) *side { return s.sides.at(h.Meta >> sideShift) }

// sideOf returns the row's side. It makes one if there is none, which counts the intents
// from then on.
func (s *Shard) sideOf(h *store.Header) *side {
	if !hasSide(h) {
		want := counted(h)
		h.Meta = h.Meta&(1<<sideShift-1) | s.takeSide()<<sideShift
		s.side(h).want = want
	}
	return s.side(h)
}

// mostSides is how many rows of a shard can have a side: as many as Header.Meta can number. Close to that, SidesFull is called. A 64th more
// may be made after that: there is time to come to an end.
const (
	mostSides = countedBit>>sideShift - 1
	sidesFull = mostSides - mostSides/64
)

// takeSide returns the number of a new side.
func (s *Shard) takeSide() uint32 {
	n := s.sides.take()
	switch {
	case n > mostSides:
		panic(fmt.Sprintf("protocol: more than %d keys of one shard are copied or waited for", mostSides))
	case n == sidesFull && s.cfg.SidesFull != nil:
		s.cfg.SidesFull(sidesFull)
	}
	return n
}

// main, placeholder and replica read the part of a side as what it is in the row's state.
// The caller knows the state.
func (d *side) main() *mainSide               { return (*mainSide)(unsafe.Pointer(&d.part)) }
func (d *side) placeholder() *placeholderSide { return (*placeholderSide)(unsafe.Pointer(&d.part)) }
func (d *side) replica() *replicaSide         { return (*replicaSide)(unsafe.Pointer(&d.part)) }

// main returns the side of a main copy. There must be one.
func (s *Shard) main(h *store.Header) *mainSide {
	if !stateOf(h).isMain() {
		wrongSide(h)
	}
	return s.side(h).main()
}

// mainOf returns the side of a main copy. It makes one if there is none.
func (s *Shard) mainOf(h *store.Header) *mainSide {
	s.sideOf(h)
	return s.main(h)
}

// placeholder returns the side of a placeholder.
func (s *Shard) placeholder(h *store.Header) *placeholderSide {
	if stateOf(h) != placeholder {
		wrongSide(h)
	}
	return s.side(h).placeholder()
}

// replica returns the side of a replica.
func (s *Shard) replica(h *store.Header) *replicaSide {
	if !stateOf(h).isReplica() {
		wrongSide(h)
	}
	return s.side(h).replica()
}

func wrongSide(h *store.Header) {
	panic(fmt.Sprintf("protocol: key %d is %v, which has another side", h.Key, stateOf(h)))
}

// mayBeHeld reports whether a row is a main copy of which other nodes may hold replicas, or that has another reason to have a side.
func mayBeHeld(h *store.Header) bool {
	st := stateOf(h)
	return (st == owner || st == tentative) && hasSide(h)
}

// tidy frees the side of a main copy that needs none. The header counts its intents then.
func (s *Shard) tidy(h *store.Header) {
	if !mayBeHeld(h) {
		return
	}
	d := s.side(h)
	if m := d.main(); d.queue == 0 && m.holders == 0 && !m.changed && !m.rough && !m.parked {
		want := d.want
		s.dropSide(h)
		s.setWants(h, want)
	}
}

// clearSide frees what the part of a side that depends on the state refers to, and
// begins that part anew.
func (s *Shard) clearSide(h *store.Header) {
	switch st := stateOf(h); {
	case st.isMain():
		s.dropHolders(s.main(h))
	case st.isReplica():
		d := s.replica(h)
		s.st.Free(d.sub)
		s.dropSpare(&d.flight)
		s.dropSpare(&d.rest)
		s.dropSpare(&d.parting)
	}
	s.side(h).part = [7]uint64{}
}

// dropSide frees the row's side, if it has one.
func (s *Shard) dropSide(h *store.Header) {
	if hasSide(h) {
		s.clearSide(h)
		s.sides.give(h.Meta >> sideShift)
		h.Meta &= 1<<sideShift - 1
	}
}

// closed reports whether writes to a replica wait: for its end, or behind a Set that
// waits.
func (s *Shard) closed(h *store.Header) bool { return stateOf(h) == draining || s.side(h).queue != 0 }
