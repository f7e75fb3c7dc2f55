package protocol

import (
	"cmp"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
)

// This file is what a shard does for a cut ([godwit.Cutter]), so that the row of each key can be
// saved with the changes from before the cut and without the later ones.
//
// Cuts follow one another: a node begins the next one when all nodes have ended the last. So
// there are two sides of a cut, and one bit tells them apart, a Mark. A worker's pushes
// and Sets carry the mark of the worker, which changes when it crosses into a cut. A main copy has
// the mark of the latest side of which it contains a change.
//
// K1. The first later change of a main copy keeps a copy of the row as it was.
// K2. A change from before the cut that comes after that is made to both.
// K3. A replica's update has changes of one side only, and its mark. Where both wait to be sent,
// those from before the cut go first (replicaSide.parting).
// K4. A key stays at its owner while there is a copy of its row that may still change. The mark
// of any other row moves with it.
//
// When all changes from before the cut have arrived at all nodes, the cut is sealed: copies, and
// rows without later changes, are what is to be saved, each where it is then.
//
// A cut may be of the changed rows only: those that have changed since they were last saved. A main copy that is as it
// was when it was saved has a bit that says so, which moves with it.
//
// K5. A row that is saved gets the later mark. One that has left before it was saved is saved where it
// arrives: that is before the word of the node that it left that it has saved its rows, as both go the
// same way. Where the node at which it arrives has given that word itself, it stays until it is saved there.
//
// K6. Any change of a main copy, and of a copy for a cut, clears the bit. A row is saved when the row itself is handed
// over; a copy that is handed over leaves the row as it is: it has later changes. The copy of a row that was saved, and
// has not changed before the cut, is not handed over.

// A Mark tells the sides of a cut apart: 0 or OddMark. It is a bit of Header.Meta.
type Mark uint8

// OddMark is the mark of a worker that has crossed into an odd number of cuts, and of what it
// changes.
const OddMark Mark = 1 << stateBits

// MarkOf returns the mark of an odd side, or of an even one.
func MarkOf(odd bool) Mark {
	if odd {
		return OddMark
	}
	return 0
}

func (m Mark) odd() bool { return m != 0 }

func markOf(h *store.Header) Mark { return Mark(h.Meta) & OddMark }

// isSaved reports whether a row, or a copy for a cut, is as it was when it was last saved.
func isSaved(h *store.Header) bool { return h.Meta&uint32(savedBit) != 0 }

// markAs gives a row what a Transfer says of it.
func (s *Shard) markAs(h *store.Header, r *wire.Record) {
	s.mark(h, MarkOf(r.Odd))
	s.setSaved(h, r.Saved)
}

// BrokenCut switches rules of cuts off, so that tests can show that they would notice.
type BrokenCut struct {
	KeepNone   bool // K1: a later change keeps no copy of the row
	LateToOne  bool // K2: a late change is made to the row only
	MixSides   bool // K3: updates of replicas have changes of both sides
	LateLast   bool // K3: a late change of a replica goes with its later ones
	SetAtOnce  bool // K3: a Set overtakes updates from before the cut
	MoveKept   bool // K4: a key moves although the copy of its row may still change
	ForgetMark bool // K4: a row that moves counts as not changed since the cut
	SaveOnce   bool // K5: nothing is saved that arrives later
	MoveOn     bool // K5: what arrives later moves on before it is saved
	StaySaved  bool // K6: a row that changes counts as saved
	CopySaved  bool // K6: late changes of a copy leave it one that need not be saved
	MoveSaved  bool // K6: a row that moves counts as saved
	OwnClocks  bool // where tables bound staleness, each worker crosses at a clock of its own
	SealEarly  bool // a node does not wait for the others' changes from before the cut
}

// A cut is what a shard knows of the cut under way.
type cut struct {
	settled Mark                     // of what is from before the cut under way; while there is none, of everything
	sealed  bool                     // all changes from before the cut have arrived at all nodes
	changed bool                     // rows that are saved already are not saved again; known when it is sealed
	saved   bool                     // … and all rows that were here have been saved
	short   bool                     // the shard has given the cut up
	full    bool                     // copies take half of what they may, or took it not long ago
	copies  map[godwit.Key]store.Ref // rows as the cut has them, of keys whose rows changed since
	most    int                      // so many copies there were at once: for these the map has room, also when they have gone
}

// copyBytes is what the map takes for a copy, beside its row: 20 to 40 bytes.
const copyBytes = 32

// bytes returns about how much memory the cut takes beside its copies.
func (c *cut) bytes() int { return copyBytes * c.most }

// later returns the mark of what is from after the cut under way.
func (c *cut) later() Mark { return c.settled ^ OddMark }

// fresh returns the mark of a row that nobody has accessed before. It need not be saved.
func (c *cut) fresh() Mark {
	if c.sealed {
		return c.later()
	}
	return c.settled
}

const (
	leastCopies = 64 << 20 // bytes of copies that all shards together may keep in any case,
	partCopies  = 10       // … and one part of so many of their rows
)

// turn prepares a change of a main copy from one side of a cut. It returns the copy of the row to which
// the change is to be made, too; nil: none.
func (s *Shard) turn(h *store.Header, m Mark) (too []float32) {
	switch {
	case m == markOf(h):
	case m == s.cut.later():
		s.keep(h)
	case s.cfg.BrokenCut.LateToOne:
	default:
		too = s.late(h.Key)
	}
	s.setSaved(h, isSaved(h) && s.cfg.BrokenCut.StaySaved)
	return too
}

// late returns the copy of a row that is about to get a change from before the cut; nil: there is none.
func (s *Shard) late(k godwit.Key) []float32 {
	c, ok := s.cut.copies[k]
	if !ok {
		return nil
	}
	if !s.cfg.BrokenCut.CopySaved {
		s.setSaved(s.st.Header(c), false)
	}
	return s.st.Floats(c)
}

// keep keeps a copy of a row that is about to contain later changes (K1).
func (s *Shard) keep(h *store.Header) {
	s.mark(h, s.cut.later())
	c := &s.cut
	if c.short || s.cfg.BrokenCut.KeepNone || c.sealed && c.changed && isSaved(h) {
		return
	}
	class := s.class(h.Key)
	switch most := s.mostCopies(class); {
	case len(c.copies) >= most:
		s.GiveUpCut()
		if s.cfg.CutShort != nil {
			s.cfg.CutShort()
		}
		return
	case 2*len(c.copies) >= most:
		s.fullCut(true)
	}
	if c.copies == nil {
		c.copies = map[godwit.Key]store.Ref{}
	}
	ref := s.st.Spare(class)
	copy(s.st.Floats(ref), store.FloatsAt(h, s.cfg.rowLens[class]))
	s.setSaved(s.st.Header(ref), isSaved(h))
	c.copies[h.Key] = ref
	c.most = max(c.most, len(c.copies))
	s.Stats.Kept++
}

// mostCopies returns how many copies of rows of a class the shard may keep.
func (s *Shard) mostCopies(class int) int {
	least := cmp.Or(s.cfg.Kept, leastCopies)
	return max(least>>s.cfg.Shift/(4*s.cfg.rowLens[class]), s.st.Len()/partCopies, 1)
}

// fullCut notes whether copies take much of what they may.
func (s *Shard) fullCut(full bool) {
	if c := &s.cut; c.full != full {
		c.full = full
		if s.cfg.CutFull != nil {
			s.cfg.CutFull(full)
		}
	}
}

// dropCopy frees the copy of a row.
func (s *Shard) dropCopy(k godwit.Key, ref store.Ref) {
	class := s.st.ClassOf(ref)
	s.st.Free(ref)
	delete(s.cut.copies, k)
	if 8*len(s.cut.copies) <= s.mostCopies(class) {
		s.fullCut(false)
	}
}

// mergeMain adds a packed difference from one side of a cut to the main copy.
func (s *Shard) mergeMain(h *store.Header, ref store.Ref, diff []float32, m Mark) {
	if too := s.turn(h, m); too != nil {
		s.merge(h.Key, too, diff)
	}
	s.merge(h.Key, s.st.Floats(ref), diff)
}

// turnReplica prepares a push to a replica from one side of a cut. It returns the row to which the
// push is to be made, too: what the replica is to be after its next update; nil: none.
func (s *Shard) turnReplica(h *store.Header, m Mark) []float32 {
	d := s.side(h).replica()
	switch {
	case d.unsent == none || s.cfg.BrokenCut.MixSides:
		s.mark(h, m)
	case m == markOf(h):
	case m == s.cut.later():
		s.split(h, store.FloatsAt(h, s.cfg.rowLens[s.class(h.Key)]))
		s.mark(h, m)
	case s.cfg.BrokenCut.LateLast:
	default:
		if !d.parting.present() {
			s.split(h, s.st.Floats(d.sub))
			d.passed = notSent
		}
		return s.floats(d.parting)
	}
	return nil
}

// split has the updates of a replica that were not sent yet go in two parts (K3): those that
// make the row what is given, and then the others.
func (s *Shard) split(h *store.Header, row []float32) {
	d := s.side(h).replica()
	d.parting = s.addSpare(d.sub)
	copy(s.floats(d.parting), row)
	s.sendExactly(h)
}

// sendFirst reports whether a Set from one side of a cut must wait at a replica, which has no
// update in flight, until the replica's updates from before the cut were sent: they are not
// overwritten in what is saved.
func (s *Shard) sendFirst(h *store.Header, m Mark) bool {
	d := s.replica(h)
	if s.cfg.BrokenCut.SetAtOnce {
		return false
	}
	if d.unsent != none && !d.parting.present() && m != markOf(h) && m == s.cut.later() {
		s.turnReplica(h, m)
	}
	return d.parting.present()
}

// mayRound reports whether an update of a replica from one side of a cut may be rounded. The
// remainder must be of the side from which the next update is.
func (s *Shard) mayRound(m Mark) bool { return s.cut.sealed || m == s.cut.settled }

// stays reports whether a key must not move (K4, K5).
func (s *Shard) stays(h *store.Header) bool {
	if s.cut.saved {
		return markOf(h) == s.cut.settled && !s.cfg.BrokenCut.MoveOn
	}
	return !s.cut.sealed && markOf(h) == s.cut.later() && !s.cfg.BrokenCut.MoveKept
}

// travelsAs returns the mark with which a main copy moves (K4).
func (s *Shard) travelsAs(h *store.Header) Mark {
	if s.cfg.BrokenCut.ForgetMark {
		return s.cut.settled
	}
	return markOf(h)
}

// SealCut takes note that all changes from before the cut have arrived at all nodes, and whether the
// cut is of the changed rows only.
func (s *Shard) SealCut(changed bool) { s.cut.sealed, s.cut.changed = true, changed }

// SavedCut takes note that this node is about to say that it has saved its rows.
func (s *Shard) SavedCut() { s.cut.saved = true }

// GiveUpCut forgets what was to be saved.
func (s *Shard) GiveUpCut() {
	s.cut.short = true
	for k, ref := range s.cut.copies {
		s.dropCopy(k, ref)
	}
	s.cut.copies, s.cut.most = nil, 0
	s.fullCut(false)
}

// EndCut takes note that the rows of all nodes are saved. No copies are left.
func (s *Shard) EndCut() { s.cut = cut{settled: s.cut.later(), full: s.cut.full} }

// Kept appends the keys to keys of which there are copies to be saved, in no particular order.
func (s *Shard) Kept(keys []godwit.Key) []godwit.Key {
	for k := range s.cut.copies {
		keys = append(keys, k)
	}
	return keys
}

// Save appends the row of a key as the cut has it to dst, value and state, if it is to be saved
// here. It then counts as saved. It is to be called for all rows, also in a cut of the changed rows.
func (s *Shard) Save(k godwit.Key, dst []float32) ([]float32, bool) {
	ref, ok := s.cut.copies[k]
	if ok {
		defer s.dropCopy(k, ref)
	} else if ref, ok = s.st.Find(k); !ok || !s.unsaved(ref) {
		return dst, false
	}
	h := s.st.Header(ref)
	s.mark(h, s.cut.later())
	if s.cut.short || s.cut.changed && isSaved(h) {
		return dst, false
	}
	s.setSaved(h, true)
	return append(dst, s.st.Floats(ref)...), true
}

// unsaved reports whether a row is a main copy that is yet to be saved, or has been.
func (s *Shard) unsaved(ref store.Ref) bool {
	h := s.st.Header(ref)
	st := stateOf(h)
	return (st == owner || st == tentative) && markOf(h) == s.cut.settled
}

// Unsaved calls do with the keys whose main copies here Save is to be called for, in no particular order.
func (s *Shard) Unsaved(do func(godwit.Key)) {
	s.st.Each(func(ref store.Ref) {
		if s.unsaved(ref) {
			do(s.st.Header(ref).Key)
		}
	})
}

// Restore overwrites floats of the main copy of a key's row (its value, then the state), from the float at on, and reports
// whether it is here. Copies at other nodes follow in the next rounds. Saved says that the row counts as saved.
func (s *Shard) Restore(k godwit.Key, at int, part []float32, saved bool) bool {
	ref, ok := s.find(k)
	if !ok || stateOf(s.st.Header(ref)) != owner {
		return false
	}
	h := s.st.Header(ref)
	if kept := s.turn(h, s.cut.settled); kept != nil {
		copy(kept[at:], part)
	}
	copy(s.st.Floats(ref)[at:], part)
	s.setSaved(h, saved)
	s.renewed(h)
	return true
}

// Row appends the main copy's row of a key, value and state, to dst, and reports whether it is here. Of a key that nobody
// has accessed it is the row that its home would make; none is made.
func (s *Shard) Row(k godwit.Key, dst []float32) ([]float32, bool) {
	if used, known := s.Touched(k); known && !used {
		t, _ := s.cfg.Model.Locate(k)
		at := len(dst)
		dst = append(dst, make([]float32, s.cfg.Model.TableRowLen(t))...)
		s.cfg.First(t, k, dst[at:])
		return dst, true
	}
	ref, ok := s.st.Find(k)
	if !ok || stateOf(s.st.Header(ref)) != owner {
		return dst, false
	}
	return append(dst, s.st.Floats(ref)...), true
}

// renewed notes that the main copy was overwritten, its state included.
func (s *Shard) renewed(h *store.Header) {
	if hasSide(h) {
		m := s.main(h)
		for x := s.firstHolder(m); x != nil; x = s.nextHolder(m, x) {
			x.full = 0 // its state is another one now
		}
	}
	s.touch(h)
}
