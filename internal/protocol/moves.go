package protocol

import (
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol/directory"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// localize serves a request to move the key to its origin.
func (s *Shard) localize(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	if r.Origin == s.cfg.Self {
		s.reply(out, r, wire.Done, nil)
		return
	}
	if a := s.place(out, h, placement.Move, r.Origin); a.Verb == placement.Relocate {
		s.move(out, h, ref, a.To)
		return
	}
	s.send(out, r.Origin, wire.Record{Kind: wire.Refuse, Key: r.Key})
}

// canMove reports whether the nodes to which moving a key sends rows take them: the new
// owner, unless it asked for the row and so has room for it, and the holders that lack
// something.
func (s *Shard) canMove(out Out, h *store.Header, to, asker godwit.NodeID) bool {
	if to != asker && !out.Takes(to) {
		return false
	}
	if !hasSide(h) {
		return true
	}
	m := s.main(h)
	for x := s.firstHolder(m); x != nil; x = s.nextHolder(m, x) {
		if x.node != to && x.version != h.Version && !out.Takes(x.node) {
			return false
		}
	}
	return true
}

// move hands the key to another node. The row stays here, frozen, until the new owner is
// confirmed; requests that still come are passed on to the new owner.
func (s *Shard) move(out Out, h *store.Header, ref store.Ref, to godwit.NodeID) {
	m := s.mainOf(h)
	hs := s.travels[:0]
	for x := s.firstHolder(m); x != nil; x = s.nextHolder(m, x) {
		if x.node != to && !s.cfg.Broken.MoveBehind {
			s.freshen(out, h, ref, x, true) // so that no holder depends on two owners' answers
		}
		hs = append(hs, wire.Holder{Node: x.node, Seq: x.seq, Version: x.version})
	}
	s.travels = hs
	s.Stats.MovesOut++
	s.departures.note(h.Key)
	s.send(out, to, wire.Record{Kind: wire.Transfer, Key: h.Key, Epoch: h.Epoch + 1, Version: h.Version, Odd: s.travelsAs(h).odd(), Saved: isSaved(h) || s.cfg.BrokenCut.MoveSaved, Vals: s.st.Floats(ref), Holders: hs})
	s.becomeFrozen(h, to)
	s.tell(Left, h.Key, to, h.Epoch)
	if s.cfg.Broken.DropAtSend {
		k := h.Key
		s.becomeAbsent(h)
		s.dir.SetHint(k, to)
		if s.cfg.HomedHere(k) {
			s.dir.SetAway(k, directory.Owner{Node: to})
		}
	}
}

// transfer takes a key over. This node's workers can use the row at once. Requests of
// other nodes wait until the old owner has passed on everything that was sent to it, so
// that no node's requests overtake one another (M3).
func (s *Shard) transfer(out Out, from godwit.NodeID, r *wire.Record) error {
	ref, ok := s.st.Find(r.Key)
	if !ok {
		ref = s.insert(r.Key)
	}
	h := s.st.Header(ref)
	own := false // the row is to contain updates of this node that the holders lack
	switch st := stateOf(h); {
	case st.isMain():
		s.tidy(h)
		if r.Epoch <= h.Epoch {
			s.Stats.Stale++
			return nil
		}
		return fmt.Errorf("protocol: node %d sends key %d of epoch %d, which is %v here since epoch %d",
			from, r.Key, r.Epoch, st, h.Epoch)
	case st.isReplica():
		s.endIdle(h)
		// The owner may pass an update in flight on to here. It counts now and is
		// ignored then.
		own = s.joinMain(h, ref, r)
	default:
		copy(s.st.Floats(ref), r.Vals)
		s.markAs(h, r)
		if st == placeholder {
			s.arrived(out, h)
		}
	}
	s.Stats.MovesIn++
	s.departures.note(r.Key)
	s.becomeTentative(h, r.Epoch, r.Version)
	s.tell(Arrived, r.Key, from, r.Epoch)
	m := s.main(h)
	for i := range r.Holders {
		if y := &r.Holders[i]; y.Node != s.cfg.Self {
			x := s.addHolder(m, y.Node)
			x.seq = y.Seq
			if s.cfg.Broken.KeepVersions {
				x.version = y.Version // else the next thing a holder hears from a new owner is the whole row
			}
		}
	}
	if own {
		s.touch(h)
	}
	if s.cfg.HomedHere(r.Key) {
		s.dir.Back(r.Key)
		s.send(out, from, wire.Record{Kind: wire.Release, Key: r.Key, Epoch: r.Epoch, Origin: s.cfg.Self})
	} else {
		s.send(out, s.cfg.Homes.Home(r.Key), wire.Record{Kind: wire.Claim, Key: r.Key, Epoch: r.Epoch, Origin: s.cfg.Self})
	}
	s.endWishHere(out, r.Key)
	s.serveQueue(out, r.Key, false)
	s.tidy(h)
	return nil
}

// joinMain makes the row of a replica the main copy that a Transfer brought, with the replica's
// updates that it does not contain, and reports whether there are any. They count at their side
// of a cut.
func (s *Shard) joinMain(h *store.Header, ref store.Ref, r *wire.Record) (own bool) {
	d := s.replica(h)
	flight := d.sent > containedSeq(r, s.cfg.Self) && d.flight.present()
	first, next := s.unsentOf(h, ref)
	side, rest := markOf(h), markOf(h)
	if first != nil {
		rest ^= OddMark
	}
	copy(s.st.Floats(ref), r.Vals)
	s.markAs(h, r)
	if flight {
		s.mergeMain(h, ref, s.floats(d.flight), d.side)
	}
	if d.rest.present() {
		s.mergeMain(h, ref, s.floats(d.rest), rest)
	}
	if s.cfg.Broken.ForgetUnsent {
		return flight
	}
	if first != nil {
		s.mergeMain(h, ref, first, rest)
	}
	if next != nil {
		s.mergeMain(h, ref, next, side)
	}
	return next != nil || flight
}

// containedSeq returns the sequence number of a node's last update that the row of a
// Transfer contains; 0: none.
func containedSeq(r *wire.Record, n godwit.NodeID) (seq uint64) {
	for i := range r.Holders {
		if r.Holders[i].Node == n {
			seq = r.Holders[i].Seq
		}
	}
	return seq
}

// claim notes at the home that the key has a new owner, and has the old one release its
// row.
func (s *Shard) claim(out Out, r *wire.Record) error {
	old := directory.Owner{Node: s.cfg.Self}
	here := absent
	if o, ok := s.dir.Away(r.Key); ok {
		old = o
	} else if ref, ok := s.st.Find(r.Key); ok {
		here, old.Epoch = stateOf(s.st.Header(ref)), s.st.Header(ref).Epoch
	}
	if r.Epoch <= old.Epoch && !s.cfg.Broken.IgnoreEpochs {
		s.Stats.Stale++
		return nil
	}
	if old.Node == s.cfg.Self && here != frozen && s.cfg.Broken == (Broken{}) {
		return fmt.Errorf("protocol: node %d claims key %d of epoch %d, which is %v here and was not handed over", r.Origin, r.Key, r.Epoch, here)
	}
	s.dir.SetAway(r.Key, directory.Owner{Node: r.Origin, Epoch: r.Epoch})
	if old.Node == s.cfg.Self {
		s.release(out, r)
		return nil
	}
	s.send(out, old.Node, wire.Record{Kind: wire.Release, Key: r.Key, Epoch: r.Epoch, Origin: r.Origin})
	return nil
}

// release removes the frozen row at the old owner. The home knows the new owner, so no
// more requests come here, and those that came were passed on.
func (s *Shard) release(out Out, r *wire.Record) {
	k, to := r.Key, r.Origin
	if ref, ok := s.st.Find(k); ok {
		h := s.st.Header(ref)
		if stateOf(h) != frozen || h.Epoch >= r.Epoch && !s.cfg.Broken.AnyRelease {
			s.Stats.Stale++
			return
		}
		s.dir.SetHint(k, to)
		s.send(out, to, wire.Record{Kind: wire.Drained, Key: k, Epoch: r.Epoch})
		ask := s.main(h).ask
		if ask == placement.Nothing && s.cfg.Policy.OnIntent(s.cfg.hot(k)) == placement.Copy {
			ask = placement.Copy
		}
		s.again(out, h, ask)
	} else if s.cfg.Broken.DropAtSend {
		s.send(out, to, wire.Record{Kind: wire.Drained, Key: k, Epoch: r.Epoch})
	} else {
		s.Stats.Stale++
	}
}

// drained ends a move at the new owner.
func (s *Shard) drained(out Out, r *wire.Record) {
	ref, ok := s.st.Find(r.Key)
	if !ok || stateOf(s.st.Header(ref)) != tentative || s.st.Header(ref).Epoch != r.Epoch && !s.cfg.Broken.AnyDrained {
		s.Stats.Stale++
		return
	}
	s.becomeOwner(s.st.Header(ref))
	s.serveQueue(out, r.Key, !s.cfg.Broken.AnyOrder)
	if ref, ok := s.st.Find(r.Key); ok {
		s.decide(out, s.st.Header(ref), ref)
	}
}
