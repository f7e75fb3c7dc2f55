package protocol

import (
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// This file is the replica's side of replication: it takes refreshes and acknowledgements,
// prepares updates, and drains.

// refresh takes the owner's row.
func (s *Shard) refresh(out Out, h *store.Header, ref store.Ref, from godwit.NodeID, r *wire.Record) error {
	if first := s.interestOf(h); (r.Seq < first || first == 0) && !s.cfg.Broken.TakeFormer {
		s.Stats.Stale++ // meant for a former replica of this node
		return nil
	}
	s.dir.SetHint(h.Key, from)
	switch st := stateOf(h); {
	case st == placeholder:
		return s.firstRefresh(out, h, ref, from, r)
	case st.isReplica():
		if (r.Version < h.Version || r.Seq < s.replica(h).acked) && !s.cfg.Broken.TakeStale {
			s.Stats.Stale++
			return nil
		}
		// An update in flight that the owner had not added stays on top.
		s.rebase(h, ref, r.Vals, s.replica(h).sent > r.Seq && !s.cfg.Broken.ForgetFlight)
		h.Epoch, h.Version = r.Epoch, r.Version
		s.tell(Refreshed, h.Key, from, r.Epoch)
		s.acked(out, h, ref, r.Seq)
		s.idled(out, h, ref)
	}
	return nil
}

// interestOf returns the sequence number of the Interest to which this node's placeholder
// or replica of a key goes back; 0: there is none.
func (s *Shard) interestOf(h *store.Header) uint64 {
	switch st := stateOf(h); {
	case st == placeholder:
		return s.placeholder(h).first
	case st.isReplica():
		return s.replica(h).first
	}
	return 0
}

// firstRefresh makes a placeholder a replica.
func (s *Shard) firstRefresh(out Out, h *store.Header, ref store.Ref, from godwit.NodeID, r *wire.Record) error {
	row := s.st.Floats(ref)
	if len(r.Vals) != len(row) {
		return fmt.Errorf("protocol: node %d sends %d of %d floats of key %d, of which there is nothing here yet", from, len(r.Vals), len(row), r.Key)
	}
	copy(row, r.Vals)
	sub := s.st.Spare(s.st.ClassOf(ref))
	copy(s.st.Floats(sub), r.Vals)
	s.arrived(out, h)
	s.becomeReplica(h, sub, r.Epoch, r.Version)
	s.tell(Copied, h.Key, from, r.Epoch)
	s.Stats.Copies++
	s.serveQueue(out, h.Key, false)
	if s.side(h).want == 0 {
		s.drain(out, h, ref)
	}
	return nil
}

// ack takes the owner's word that the row contains the updates of the copy.
func (s *Shard) ack(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	if !stateOf(h).isReplica() || r.Seq < s.replica(h).first {
		s.Stats.Stale++
		return
	}
	h.Version = max(h.Version, r.Version)
	s.acked(out, h, ref, r.Seq)
}

// acked notes that the main copy contains the replica's updates up to seq. An update in
// flight ends with that, unless it is the last: that one waits for Dropped.
func (s *Shard) acked(out Out, h *store.Header, ref store.Ref, seq uint64) {
	d := s.replica(h)
	d.acked = max(d.acked, seq)
	if stateOf(h) != inFlight || d.sent > seq {
		return
	}
	s.dropSpare(&d.flight)
	d.sent = 0
	if d.passed == sent {
		d.passed = noPassed
	}
	if d.unsent == none {
		s.becomeFresh(h)
	} else {
		s.becomeDirty(h)
	}
	s.serveQueue(out, h.Key, false)
	if stateOf(h) == inFlight {
		return // a Set that waited is the next update
	}
	if s.side(h).want == 0 && !d.parting.present() {
		s.drain(out, h, ref)
	}
	if stateOf(h) == dirty && d.unsent >= due {
		s.dirty = append(s.dirty, h.Key)
	}
}

// drain begins to give up a replica that nobody wants: its last updates go to the owner,
// and it can be read until the owner has them. So a worker that wrote here and
// reads again finds its own write, here or at the owner. While an update is in flight,
// its acknowledgement will begin it. While requests of this node are on the network, which may
// be of before the replica, it stays: as long as it is a holder, its Refresh comes before the
// answer (R4). When it is none any more and the key moves, the new owner's answer may overtake the
// former one's Dropped.
func (s *Shard) drain(out Out, h *store.Header, ref store.Ref) {
	if st := stateOf(h); st != fresh && st != dirty {
		return
	}
	d := s.replica(h)
	if d.parting.present() {
		return // the next round sends that, and its acknowledgement begins it
	}
	if *s.remoteOf(h.Key) != 0 {
		if !d.is(leaving) {
			d.stay |= leaving
			s.leaving = append(s.leaving, h.Key)
		}
		return // a round begins it when they are answered
	}
	s.extract(h, ref)
	s.becomeDraining(h)
	s.tell(DropBegun, h.Key, s.cfg.Self, h.Epoch)
	s.unsettle(h)
	s.rec = wire.Record{Kind: wire.End, Key: h.Key, Origin: s.cfg.Self, Seq: d.sent, Hops: 1, Odd: d.side.odd(), Vals: s.floats(d.flight)}
	omitZeros(&s.rec)
	out.Send(s.next(h.Key, 0), &s.rec)
	if s.cfg.Broken.DropEarly {
		s.gone(out, h)
	}
}

// drainLeaving drains the replicas that nobody wants and that stayed until requests of this node were
// answered, if they are by now.
func (s *Shard) drainLeaving(out Out) {
	for h, ref := range s.taken(&s.leaving, false) {
		if !stateOf(h).isReplica() {
			continue
		}
		s.replica(h).stay &^= leaving
		if s.side(h).want == 0 {
			s.drain(out, h, ref)
		}
	}
}

// extract takes the updates of a replica that were not sent yet as the difference in
// flight, if they make one. The replica is about to become in flight or draining. Of updates from
// both sides of a cut it takes the first, if they make a difference; the others go
// next.
func (s *Shard) extract(h *store.Header, ref store.Ref) {
	d := s.side(h).replica()
	if d.parting.present() {
		d.side = markOf(h) ^ OddMark
		took := s.takeFlight(h, ref, s.floats(d.parting))
		s.dropSpare(&d.parting)
		if took {
			d.unsent = due
			return
		}
	}
	d.unsent, d.side = none, markOf(h)
	if took := s.takeFlight(h, ref, s.st.Floats(ref)); took && d.passed != noPassed {
		d.passed = sent
	} else {
		d.passed = noPassed
	}
}

// takeFlight takes what a replica's row has and sub has not as the difference in flight,
// together with what rounding left, and reports whether there is any. row is the replica's row,
// or that without its latest updates.
func (s *Shard) takeFlight(h *store.Header, ref store.Ref, row []float32) bool {
	d := s.side(h).replica()
	d.flight = s.addSpare(ref)
	changed := vec.Delta(s.floats(d.flight), row, s.st.Floats(d.sub))
	if changed {
		s.clip(h, ref)
		s.pack(h.Key, row, s.floats(d.flight))
	}
	if !s.withRest(d) && !changed {
		s.dropSpare(&d.flight)
		return false
	}
	return true
}

// pack turns the difference that pushes made to a row into what travels (R8).
func (s *Shard) pack(k godwit.Key, row, diff []float32) {
	i, _ := s.cfg.Model.Locate(k)
	if m := s.cfg.mergers[i]; m != nil {
		dim := s.cfg.Model.Table(i).Dim
		m.Pack(row[:dim:dim], row[dim:], diff[:dim:dim])
	}
}

// merge adds a packed difference to a row, as the update rule has it (R8).
func (s *Shard) merge(k godwit.Key, row, diff []float32) {
	i, _ := s.cfg.Model.Locate(k)
	if m := s.cfg.mergers[i]; m != nil && !s.cfg.Broken.AddPacked {
		dim := s.cfg.Model.Table(i).Dim
		vec.Add(row[dim:], diff[dim:])
		m.Merge(row[:dim:dim], row[dim:], diff[:dim:dim])
		return
	}
	vec.Add(row, diff)
}

// unsentOf takes apart what a replica has not sent yet, packed: the updates that go first, of the
// side before a cut, nil if all are of one side, and the others, nil if
// there are none. Both are scratch.
func (s *Shard) unsentOf(h *store.Header, ref store.Ref) (first, next []float32) {
	d, k := s.replica(h), h.Key
	if d.unsent == none {
		return nil, nil
	}
	row, from := s.st.Floats(ref), s.st.Floats(d.sub)
	if d.parting.present() {
		between := s.floats(d.parting)
		s.before = append(s.before[:0], between...)
		vec.Sub(s.before, from)
		s.pack(k, between, s.before)
		first, from = s.before, between
	}
	s.diff = append(s.diff[:0], row...)
	vec.Sub(s.diff, from)
	s.pack(k, row, s.diff)
	return first, s.diff
}

// rebase puts a replica onto the owner's newer row (R2): onto that go the update in
// flight, if the row does not contain it, and then what was not sent yet.
// Where the row comes without all of its state, the copy's own stays.
func (s *Shard) rebase(h *store.Header, ref store.Ref, newer []float32, flight bool) {
	d, k := s.replica(h), h.Key
	row, sub := s.st.Floats(ref), s.st.Floats(d.sub)
	first, next := s.unsentOf(h, ref)
	n := copy(sub, newer)
	if flight && d.flight.present() {
		diff := s.floats(d.flight)
		vec.Sub(sub[n:], diff[n:]) // the copy's own state contains it, and it is about to be merged
		s.merge(k, sub, diff)
	}
	if d.rest.present() {
		rest := s.floats(d.rest)
		vec.Sub(sub[n:], rest[n:]) // likewise
		s.merge(k, sub, rest)
	}
	copy(row, sub)
	if s.cfg.Broken.ForgetUnsent {
		return
	}
	if first != nil {
		s.merge(k, row, first)
		copy(s.floats(d.parting), row)
	}
	if next != nil {
		s.merge(k, row, next)
	}
}

// dropped ends a drained replica.
func (s *Shard) dropped(out Out, h *store.Header, from godwit.NodeID, r *wire.Record) {
	if stateOf(h) != draining || s.replica(h).sent != r.Seq {
		s.Stats.Stale++
		return
	}
	s.dir.SetHint(h.Key, from)
	s.gone(out, h)
}

// gone removes a replica, and asks for a new one if the node wants one again meanwhile.
func (s *Shard) gone(out Out, h *store.Header) {
	s.Stats.Drops++
	s.departures.note(h.Key)
	s.tell(Ended, h.Key, s.cfg.Self, h.Epoch)
	s.again(out, h, placement.Copy)
}
