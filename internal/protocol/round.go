package protocol

import (
	"iter"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
)

// Round is this shard's part of a sync round: updates of replicas go to the owners, and
// rows that changed go to their holders. Its cost follows what changed; an idle replica
// costs nothing. It reports whether something had to stay for a later round because the
// queue to a node was full.
//
// A holder that does not use its copy is refreshed less and less often, and one that rests (Out.Rests) not at all. It is refreshed at
// once if all is set, or if bounded is set and its table bounds staleness.
func (s *Shard) Round(out Out, all, bounded bool) (held bool) {
	if all {
		s.unpark(&s.parked[0])
	}
	if all || bounded { // who has a copy of a table with a bound is told that it is fresh
		s.unpark(&s.parked[1])
	}
	held = s.RoundUp(out)
	held = s.roundDown(out, all, bounded) || held
	return s.mend(out, all) || held
}

// taken empties a list of keys, and leads through the rows of those that were on it and are here. What is listed
// meanwhile is on the list for the next time, and so are the keys that are left when the loop ends early.
// If look is set, the processor is told what comes next.
func (s *Shard) taken(list *[]godwit.Key, look bool) iter.Seq2[*store.Header, store.Ref] {
	listed := *list
	*list = listed[:0]
	return func(yield func(*store.Header, store.Ref) bool) {
		var ahead lookahead
		if look {
			ahead.begin(s, listed)
		}
		for i, k := range listed {
			if look {
				ahead.step(s, listed, i)
			}
			if ref, ok := s.st.Find(k); ok && !yield(s.st.Header(ref), ref) {
				*list = append(*list, listed[i+1:]...)
				return
			}
		}
	}
}

// RoundUp is the part of Round that sends updates of replicas to the owners.
func (s *Shard) RoundUp(out Out) (held bool) {
	s.drainLeaving(out)
	for h, ref := range s.taken(&s.dirty, true) {
		if st := stateOf(h); st != dirty && !(st == inFlight && s.cfg.Broken.ManyInFlight) {
			continue // since it was listed it was sent or drained, or is a new replica
		}
		to := s.next(h.Key, 0)
		if !out.Room(to) {
			s.dirty = append(s.dirty, h.Key)
			held = true
			if !out.Rooms() {
				break
			}
			continue
		}
		if s.holdBack(h, ref) {
			continue
		}
		d := s.side(h).replica()
		whole := d.unsent == exact
		s.extract(h, ref)
		if !d.flight.present() {
			s.becomeFresh(h) // the pushes made no difference
			s.servedUp(out, h, ref)
			continue
		}
		s.becomeInFlight(h)
		s.Stats.Deltas++
		s.rec = wire.Record{Kind: wire.Delta, Key: h.Key, Origin: s.cfg.Self, Seq: d.sent, Hops: 1, Odd: d.side.odd(), Vals: s.floats(d.flight)}
		if !whole && s.mayRound(d.side) {
			s.roundUpdate(out, to, h, &s.rec)
		}
		if s.rec.Coding == wire.Raw {
			shorten(out, to, &s.rec)
		}
		out.Send(to, &s.rec)
	}
	return held
}

// servedUp goes on with a replica that has become fresh though nothing was acknowledged: a Set
// may wait for that, or nobody may want it any more.
func (s *Shard) servedUp(out Out, h *store.Header, ref store.Ref) {
	s.serveQueue(out, h.Key, false)
	if stateOf(h) == fresh && s.side(h).want == 0 {
		s.drain(out, h, ref)
	}
}

func (s *Shard) roundDown(out Out, all, bounded bool) (held bool) {
	for h, ref := range s.taken(&s.changed, false) {
		if !mayBeHeld(h) {
			continue // it moved away, or nobody holds it any more
		}
		m := s.side(h).main()
		if !m.changed {
			continue // it is on the list twice, or is again and has not changed
		}
		m.changed = false
		s.setNoted(h, false)
		full, later, rests := s.freshenAll(out, h, ref, m, all || bounded && s.cfg.isBounded(h.Key))
		if full || later {
			s.markChanged(h)
		}
		if rests {
			s.park(h.Key, m)
		}
		held = held || full
		s.tidy(h)
		if full && !out.Rooms() {
			break
		}
	}
	return held
}

// park notes that a holder of a key that rests lacks something.
func (s *Shard) park(k godwit.Key, m *mainSide) {
	if !m.parked {
		m.parked = true
		list := &s.parked[0]
		if s.cfg.isBounded(k) {
			list = &s.parked[1]
		}
		*list = append(*list, k)
	}
}

// unpark has this round go over the rows of a list of which holders that rested lack something.
func (s *Shard) unpark(list *[]godwit.Key) {
	for h := range s.taken(list, false) {
		if mayBeHeld(h) {
			s.side(h).main().parked = false
			s.markChanged(h)
			s.tidy(h)
		}
	}
}

// freshenAll brings the holders up to date, exactly if all is set. It reports whether the queue to a holder was
// full, whether a holder that lacks something waits for its turn, and whether one that rests does.
func (s *Shard) freshenAll(out Out, h *store.Header, ref store.Ref, m *mainSide, all bool) (full, later, rests bool) {
	for x := s.firstHolder(m); x != nil; x = s.nextHolder(m, x) {
		switch {
		case !x.is(unacked) && x.version == h.Version && !(all && x.is(rough)):
		case !all && s.rests(out, x):
			if x.is(unacked) {
				s.acknowledge(out, h, x)
			}
			rests = rests || x.version != h.Version
		case !x.is(unacked) && !all && x.skips():
			later = true
		case !out.Room(x.node):
			full = true
		default:
			s.freshen(out, h, ref, x, all)
		}
	}
	return full, later, rests
}

// A Flush follows the updates that were on their way when it began.
type Flush struct {
	todo []flushed
}

type flushed struct {
	key   godwit.Key
	first uint64 // which replica of the key
	seq   uint64 // an acknowledgement of this update or a later one is enough
	more  bool   // … and then one of what is to be sent next (K3)
}

// BeginFlush notes every update of replicas of this shard that the owners did not
// acknowledge yet. The next round sends those of them that were held.
func (s *Shard) BeginFlush() (f Flush) { return s.beginFlush(false) }

// BeginSettle is BeginFlush for the tables with bounded staleness. The remainder of
// rounding may stay for longer ([godwit.Filter]): else nothing would be rounded.
func (s *Shard) BeginSettle() (f Flush) { return s.beginFlush(true) }

func (s *Shard) beginFlush(bounded bool) (f Flush) {
	s.settle(func(h *store.Header) {
		if bounded && !s.cfg.isBounded(h.Key) {
			return
		}
		if x := s.flush(h, bounded); x.seq != 0 {
			f.todo = append(f.todo, x)
		}
	})
	return f
}

// Len returns how many updates the flush waits for.
func (f *Flush) Len() int { return len(f.todo) }

// flush has the updates of a replica sent, and returns what to wait for; its seq is 0 if that is
// nothing.
func (s *Shard) flush(h *store.Header, bounded bool) flushed {
	d := s.replica(h)
	x := flushed{key: h.Key, first: d.first, seq: d.sent}
	switch {
	case d.unsent != none && bounded && s.rounds(h.Key):
		if d.unsent >= due {
			x.seq, x.more = s.seq+1, d.parting.present()
		}
	case d.unsent != none:
		s.sendExactly(h)
		x.seq, x.more = s.seq+1, d.parting.present()
	}
	return x
}

// unsettle lists a replica that has updates, on their way or still to be sent.
// It stays on the list for some time after they were acknowledged.
func (s *Shard) unsettle(h *store.Header) {
	d := s.side(h).replica()
	if d.listed == s.listing+1 {
		return
	}
	if len(s.unsettled) == cap(s.unsettled) {
		s.settle(nil) // before the list grows, so that its length follows what is unsettled
	}
	d.listed = s.listing + 1
	s.unsettled = append(s.unsettled, h.Key)
}

// settle takes off the list what has nothing under way any more, and calls each, if it is not nil, for the others.
func (s *Shard) settle(each func(h *store.Header)) {
	listed := s.listing + 1
	s.listing ^= 1 // so that a second entry of a key goes
	for h := range s.taken(&s.unsettled, true) {
		if !stateOf(h).isReplica() {
			continue
		}
		d := s.replica(h)
		switch {
		case d.listed != listed: // listed for a former replica, or twice
		case stateOf(h) == fresh:
			d.listed = 0
		default:
			d.listed = s.listing + 1
			s.unsettled = append(s.unsettled, h.Key)
			if each != nil {
				each(h)
			}
		}
	}
}

// Flushed reports whether all updates of a flush have reached their owners.
func (s *Shard) Flushed(f *Flush) bool {
	for n := len(f.todo); n > 0; n = len(f.todo) {
		x := &f.todo[n-1]
		switch d := s.flushing(x); {
		case d != nil && x.more && !d.parting.present():
			ref, _ := s.st.Find(x.key)
			*x = s.flush(s.st.Header(ref), false)
			if x.seq != 0 {
				continue
			}
		case d != nil && !s.reached(d, x):
			return false
		}
		f.todo = f.todo[:n-1]
	}
	return true
}

// flushing returns the replica that has updates of a flush; nil: it is no more, and its owner has
// everything, or it has no updates at all.
func (s *Shard) flushing(x *flushed) *replicaSide {
	ref, ok := s.st.Find(x.key)
	if !ok {
		return nil // a replica goes when the owner has everything
	}
	h := s.st.Header(ref)
	if st := stateOf(h); !st.isReplica() || st == fresh {
		return nil
	}
	if d := s.replica(h); d.first == x.first {
		return d
	}
	return nil
}

func (s *Shard) reached(d *replicaSide, x *flushed) bool {
	return !x.more && d.passed == noPassed && (d.acked >= x.seq || d.sent >= x.seq && s.cfg.Broken.FlushAtSend)
}
