package protocol

import (
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// This file is the owner's side of replication: it registers and removes holders, adds
// their updates, and sends them refreshes.

// situation is what the policy is asked about.
func (s *Shard) situation(h *store.Header, asked placement.Ask, asker godwit.NodeID) placement.Situation {
	sit := placement.Situation{Self: s.cfg.Self, Unmoved: h.Epoch == 0, Hot: s.cfg.hot(h.Key), Asked: asked, Asker: asker}
	sit.SelfWants = s.wants(h) > 0
	if !hasSide(h) {
		return sit
	}
	m := s.main(h)
	s.others = s.others[:0]
	for x := s.firstHolder(m); x != nil; x = s.nextHolder(m, x) {
		s.others = append(s.others, x.node)
		sit.SelfWants = sit.SelfWants || x.is(wished) // nobody announced, and workers here may use the key as well (L2)
	}
	sit.Others = s.others
	return sit
}

// lastEpoch is the epoch of a key that can move no more, because its epoch cannot grow. It
// has moved 4·10⁹ times.
const lastEpoch = math.MaxUint32

// interest registers a node that wants a copy, or refuses it, or moves the key, as the
// policy decides.
func (s *Shard) interest(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	m := s.mainOf(h)
	x := s.holder(m, r.Origin)
	if x == nil {
		x = s.addHolder(m, r.Origin)
	}
	*x = holder{node: r.Origin, seq: r.Seq, next: x.next}
	if r.Kind == wire.Wish {
		x.marks = wished
	}
	switch a := s.place(out, h, placement.Copy, r.Origin); a.Verb {
	case placement.Relocate:
		s.move(out, h, ref, a.To)
	case placement.Replicate:
		s.freshen(out, h, ref, x, true)
	default:
		s.dropHolder(m, r.Origin)
		s.tidy(h)
		s.send(out, r.Origin, wire.Record{Kind: wire.Refuse, Key: r.Key})
	}
}

// delta adds a replica's update to the main copy, once. A key that did not move to its only holder when the intents here ended, as the
// holder did not use it, moves now.
func (s *Shard) delta(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	x := s.holder(s.mainOf(h), r.Origin)
	if x == nil {
		s.Stats.Stale++ // of a node that ended its interest since: it ends only when everything it sent was taken
		s.tidy(h)
		return
	}
	s.addUpdate(h, ref, x, r)
	x.marks |= unacked
	if s.rests(out, x) {
		s.acknowledge(out, h, x)
	}
	s.markChanged(h)
	if s.cfg.ahead && s.wants(h) == 0 && s.onlyHolder(h) != nil {
		s.decide(out, h, ref)
	}
}

// addUpdate adds an update of a holder to the main copy, unless the row contains it (R1).
func (s *Shard) addUpdate(h *store.Header, ref store.Ref, by *holder, r *wire.Record) {
	if r.Seq <= by.seq && !s.cfg.Broken.TakeTwice {
		s.Stats.Stale++
		return
	}
	by.seq = r.Seq
	by.used()
	if len(r.Vals) == 0 {
		return
	}
	s.mergeMain(h, ref, r.Vals, MarkOf(r.Odd))
	current := by.version == h.Version && by.version != 0
	s.touch(h)
	switch {
	case current && by.is(lags):
		by.full = 0 // the holder applied its pushes to older state: the next refresh brings all
	case current:
		by.version, by.full = h.Version, h.Version // the holder has this update already: nothing to send back
	}
}

// end adds a node's last updates and removes the node from the holders.
func (s *Shard) end(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	m := s.mainOf(h)
	if x := s.holder(m, r.Origin); x != nil && (r.Seq > x.seq || s.cfg.Broken.EndAny) {
		s.addUpdate(h, ref, x, r)
		s.dropHolder(m, r.Origin)
	} else {
		// Of a node to which the key moved meanwhile. It may have lost the key
		// again and hold a new copy, which this does not end.
		s.Stats.Stale++
	}
	s.send(out, r.Origin, wire.Record{Kind: wire.Dropped, Key: r.Key, Seq: r.Seq})
	s.decide(out, h, ref)
}

// decide asks the policy again after an interest ended, or an update came.
func (s *Shard) decide(out Out, h *store.Header, ref store.Ref) {
	if stateOf(h) != owner {
		return
	}
	if hasSide(h) && s.main(h).holders != 0 {
		if a := s.place(out, h, placement.Nothing, godwit.NoNode); a.Verb == placement.Relocate {
			s.move(out, h, ref, a.To)
			return
		}
	}
	s.tidy(h)
}

// stateAge bounds the age of an update rule's state in a copy that may lag (see
// [godwit.Merger]): a holder gets the state anew when the row's version has grown by one
// part in stateAge since. What a state sums up then lacks about a third, and in AdaGrad a
// step at the copy, until it is merged, is a fifth too long.
const stateAge = 2

// freshen brings a holder up to date: it sends the row, if the copy is not equal to it, or
// else the acknowledgement that is due. Unless it is to be sent exactly, the row may be rounded for who has one.
func (s *Shard) freshen(out Out, h *store.Header, ref store.Ref, to *holder, exactly bool) {
	switch {
	case to.version != h.Version || to.version == 0 || exactly && to.is(rough):
		if h.Version == 0 {
			h.Version = 1 // version 0 is "never had a copy"
		}
		s.Stats.Refreshes++
		row := s.st.Floats(ref)
		n := s.cfg.Model.Fresh(h.Key)
		if n < len(row) && to.version != 0 && h.Version <= to.full+to.full/stateAge {
			row = row[:n]
			to.marks |= lags
		} else {
			to.full = h.Version
			to.marks &^= lags
		}
		to.version = h.Version
		to.marks &^= rough
		to.refreshed()
		s.rec = wire.Record{Kind: wire.Refresh, Key: h.Key, Epoch: h.Epoch, Version: h.Version, Seq: to.seq, Vals: row}
		if !exactly {
			s.roundRefresh(out, h, to)
		}
		if s.rec.Coding == wire.Raw {
			shorten(out, to.node, &s.rec)
		}
		out.Send(to.node, &s.rec)
	case to.is(unacked):
		s.acknowledge(out, h, to)
	}
	to.marks &^= unacked
}

// acknowledge tells a holder that its updates were added. What else it lacks comes later.
func (s *Shard) acknowledge(out Out, h *store.Header, to *holder) {
	to.marks &^= unacked
	s.Stats.Acks++
	s.send(out, to.node, wire.Record{Kind: wire.Ack, Key: h.Key, Version: to.version, Seq: to.seq})
}

// rests reports whether a holder needs no refresh before it asks for it. Who has never heard from this owner gets the row at once (R3).
func (s *Shard) rests(out Out, x *holder) bool { return x.version != 0 && out.Rests(x.node) }
