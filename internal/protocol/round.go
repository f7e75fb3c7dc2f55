package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
)

// Round is this shard's part of a sync round: updates of replicas go to the
// owners, and holders of owned keys that changed get them. Its cost follows
// what changed; an idle replica costs nothing. It reports whether something
// had to stay for a later round because the queue to a node was full.
//
// A holder that only waits for the use of its copy gets it less and less often,
// unless all says that everything must go, or bounded that everything must of the
// tables with bounded staleness.
func (s *Shard) Round(out Out, all, bounded bool) (held bool) {
	held = s.roundUp(out)
	return s.roundDown(out, all, bounded) || held
}

func (s *Shard) roundUp(out Out) (held bool) {
	dirty := s.dirty
	s.dirty = s.dirty[:0]
	for _, k := range dirty {
		ref, ok := s.st.Find(k)
		if !ok {
			continue
		}
		h := s.st.Header(ref)
		if stateOf(h) != replica {
			continue
		}
		d := s.side(h)
		if !d.dirty || d.sent != 0 && !s.cfg.Broken.ManyInFlight {
			continue // since on the list it was drained, or is a new replica
		}
		to := s.next(k, 0)
		if !out.Room(to) {
			s.dirty = append(s.dirty, k)
			held = true
			continue
		}
		if s.holdBack(h, ref, d) {
			continue
		}
		exact := d.flush
		s.extract(h, ref, d)
		if !d.flying {
			continue
		}
		s.seq++
		d.sent = s.seq
		s.Stats.Deltas++
		s.rec = wire.Record{Kind: wire.Delta, Key: k, Origin: s.cfg.Self, Seq: d.sent, Hops: 1, Vals: s.flight(d)}
		if !exact {
			s.roundUpdate(h, d, &s.rec)
		}
		out.Send(to, &s.rec)
	}
	return held
}

func (s *Shard) roundDown(out Out, all, bounded bool) (held bool) {
	changed := s.changed
	s.changed = s.changed[:0]
	for _, k := range changed {
		ref, ok := s.st.Find(k)
		if !ok {
			continue
		}
		h := s.st.Header(ref)
		if st := stateOf(h); st != owner && st != tentative || !hasSide(h) || !s.side(h).noted {
			continue // it moved away; noted means something else of a key that is asked for anew
		}
		d := s.side(h)
		d.noted = false
		full, later := s.freshenAll(out, h, ref, d, all || bounded && s.cfg.isBounded(k))
		if full || later {
			s.markChanged(h, d)
		}
		held = held || full
		s.tidy(h)
	}
	return held
}

// freshenAll freshens the holders. It reports whether the queue to one was full,
// and whether one that lacks something has to wait for its turn.
func (s *Shard) freshenAll(out Out, h *store.Header, ref store.Ref, d *side, all bool) (full, later bool) {
	for x := s.firstHolder(d); x != nil; x = s.nextHolder(d, x) {
		switch {
		case !x.is(unacked) && x.version == h.Version:
		case !x.is(unacked) && !all && x.skips():
			later = true
		case !out.Room(x.node):
			full = true
		default:
			s.freshen(out, h, ref, x)
		}
	}
	return full, later
}

// A Flush follows the updates that were on their way when it began.
type Flush struct {
	todo []flushed
}

type flushed struct {
	key   godwit.Key
	first uint64 // which replica of the key
	seq   uint64 // an acknowledgement of this update or a later one is enough
}

// BeginFlush notes every update of replicas of this shard that the owners did
// not acknowledge yet, and has those sent in the next round that were held back.
func (s *Shard) BeginFlush() (f Flush) { return s.beginFlush(false) }

// BeginSettle is BeginFlush for the tables with bounded staleness. What rounding
// leaves of an update may stay for longer ([godwit.Filter]): else nothing would be
// rounded.
func (s *Shard) BeginSettle() (f Flush) { return s.beginFlush(true) }

func (s *Shard) beginFlush(bounded bool) (f Flush) {
	s.settle()
	for _, k := range s.unsettled {
		if bounded && !s.cfg.isBounded(k) {
			continue
		}
		ref, _ := s.st.Find(k)
		h := s.st.Header(ref)
		switch d := s.side(h); {
		case d.dirty && bounded && s.rounds(k):
			switch {
			case !d.weak:
				f.todo = append(f.todo, flushed{k, d.first, s.seq + 1})
			case d.sent != 0:
				f.todo = append(f.todo, flushed{k, d.first, d.sent})
			}
		case d.dirty:
			s.sendAll(h, d)
			f.todo = append(f.todo, flushed{k, d.first, s.seq + 1})
		default:
			f.todo = append(f.todo, flushed{k, d.first, d.sent})
		}
	}
	return f
}

// unsettle lists a replica that has updates, on their way or still to be sent.
// It stays on the list for some time after they were acknowledged.
func (s *Shard) unsettle(h *store.Header, d *side) {
	if d.listed {
		return
	}
	if len(s.unsettled) == cap(s.unsettled) {
		s.settle() // before the list grows, so that its length follows what is unsettled
	}
	d.listed = true
	s.unsettled = append(s.unsettled, h.Key)
}

// settle takes off the list what has nothing under way any more.
func (s *Shard) settle() {
	rest := s.unsettled[:0]
	for _, k := range s.unsettled {
		ref, ok := s.st.Find(k)
		if !ok || !hasSide(s.st.Header(ref)) {
			continue
		}
		h := s.st.Header(ref)
		d := s.side(h)
		if !d.listed {
			continue // listed for a former replica
		}
		d.listed = false // so that a second entry of the key is not kept
		if stateOf(h) == replica && (d.dirty || d.sent != 0) {
			rest = append(rest, k)
		}
	}
	for _, k := range rest {
		ref, _ := s.st.Find(k)
		s.side(s.st.Header(ref)).listed = true
	}
	s.unsettled = rest
}

// Flushed reports whether all updates of a flush have reached their owners.
func (s *Shard) Flushed(f *Flush) bool {
	for n := len(f.todo); n > 0; n-- {
		if x := f.todo[n-1]; !s.reached(x) {
			return false
		}
		f.todo = f.todo[:n-1]
	}
	return true
}

func (s *Shard) reached(x flushed) bool {
	ref, ok := s.st.Find(x.key)
	if !ok {
		return true // a replica goes when the owner has everything
	}
	h := s.st.Header(ref)
	if stateOf(h) != replica {
		return true
	}
	d := s.side(h)
	return d.first != x.first || d.acked >= x.seq || !d.dirty && d.sent == 0 || d.sent >= x.seq && s.cfg.Broken.FlushAtSend
}
