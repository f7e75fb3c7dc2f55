package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// Request takes a request of a worker of this node (Pull, Push, Set or Localize) that the
// fast path could not serve. The reply goes to out.Send, with this node as the receiver,
// now or later.
func (s *Shard) Request(out Out, r *wire.Record) {
	r.Origin, r.Hops, r.Coming = s.cfg.Self, 0, false
	s.request(out, r)
}

// RequestDirect is Request where a key that is not here is asked for at its home, as by Pass.
func (s *Shard) RequestDirect(out Out, r *wire.Record) {
	s.direct = true
	s.Request(out, r)
	s.direct = false
}

// Resume takes a request that the caller has kept until now, of a worker of this node or
// of another node.
func (s *Shard) Resume(out Out, r *wire.Record) { s.request(out, r) }

// request serves, queues or passes on a record that is meant for the owner.
func (s *Shard) request(out Out, r *wire.Record) {
	if r.Hops > s.Stats.MaxHops {
		s.Stats.MaxHops = r.Hops
	}
	ref, ok := s.find(r.Key)
	if !ok {
		s.requestAbsent(out, r)
		return
	}
	h := s.st.Header(ref)
	own := r.Origin == s.cfg.Self && ask(r.Kind)
	switch stateOf(h) {
	case owner:
		s.serve(out, h, ref, r)
	case tentative:
		switch {
		case own && r.Kind == wire.Localize:
			s.reply(out, r, wire.Done, nil)
		case own && (r.Kind == wire.Pull || r.Kind == wire.Push) && s.first(h),
			s.cfg.Broken.ServeTentative && r.Kind < wire.Localize, s.cfg.Broken.MoveTentative && r.Kind == wire.Localize:
			s.serve(out, h, ref, r)
		default:
			s.wait(h, r)
		}
	case frozen:
		if own && r.Kind == wire.Localize && r.Hops == 0 {
			s.wait(h, r) // until it is gone, then ask for it back
			return
		}
		if s.cfg.Broken.ServeFrozen && r.Kind < wire.Localize {
			s.serve(out, h, ref, r)
			return
		}
		r.Coming = true
		s.pass(out, r, s.main(h).successor)
	case placeholder:
		// A stale hint may lead the question back to the node that asks.
		question := r.Kind == wire.Localize && r.Hops > 0 && !s.cfg.Broken.KeepQuestion
		if own && !question {
			// Lateness of a key that was asked to move says nothing: other nodes ask for it too, and
			// an earlier question would only lose it earlier. Nor does that of one that nobody announced.
			if s.side(h).want > 0 && s.placeholder(h).ask == placement.Copy && r.Kind != wire.Localize && !s.learner.Has(r.Key) {
				s.Stats.Late++
			}
			s.wait(h, r)
		} else {
			s.pass(out, r, s.next(r.Key, r.Hops))
		}
	default: // a replica
		if own {
			s.requestReplica(out, h, ref, r)
		} else {
			s.pass(out, r, s.next(r.Key, r.Hops))
		}
	}
}

// ask reports whether a kind is an operation of a worker.
func ask(k wire.Kind) bool { return k <= wire.Localize }

func (s *Shard) requestAbsent(out Out, r *wire.Record) {
	if r.Kind == wire.Localize && r.Origin == s.cfg.Self && r.Hops == 0 {
		if !s.cfg.movable(r.Key) {
			s.reply(out, r, wire.Done, nil)
			return
		}
		h := s.becomePlaceholder(r.Key, placement.Move, out.Now())
		s.wait(h, r)
		s.send(out, s.next(r.Key, 0), wire.Record{Kind: wire.Localize, Key: r.Key, Origin: s.cfg.Self, Hops: 1})
		return
	}
	hops := r.Hops
	if s.direct {
		hops = hintHops
	}
	s.pass(out, r, s.next(r.Key, hops))
}

// movable reports whether asking for the key can have an effect.
func (c *Config) movable(k godwit.Key) bool {
	return c.Policy.OnIntent(c.hot(k)) != placement.Nothing
}

// requestReplica serves a request of this node at its own replica.
func (s *Shard) requestReplica(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	switch {
	case r.Kind == wire.Set && s.cfg.Broken.LooseSet:
		s.pass(out, r, s.next(r.Key, r.Hops))
	case r.Kind == wire.Pull:
		s.answerPull(out, h, r)
	case r.Kind == wire.Localize:
		s.reply(out, r, wire.Done, nil)
	case s.closed(h):
		s.wait(h, r)
	case r.Kind == wire.Push:
		s.applyReplica(h, r.Vals, MarkOf(r.Odd))
		s.reply(out, r, wire.Done, nil)
	case r.Kind == wire.Set && (stateOf(h) == inFlight || s.sendFirst(h, MarkOf(r.Odd))):
		s.wait(h, r)
	case r.Kind == wire.Set:
		s.extract(h, ref)
		s.becomeInFlight(h)
		r.Seq = s.replica(h).sent
		s.unsettle(h)
		s.pass(out, r, s.next(r.Key, r.Hops))
	}
}

// pass sends a record on towards the owner.
func (s *Shard) pass(out Out, r *wire.Record, to godwit.NodeID) {
	if r.Hops == 0 && r.Origin == s.cfg.Self {
		if ask(r.Kind) && r.Op != 0 {
			*s.remoteOf(r.Key)++
		}
	} else {
		s.Stats.Forwards++
	}
	if r.Hops < 255 {
		r.Hops++
	}
	out.Send(to, r)
}

// reply answers a worker's request.
func (s *Shard) reply(out Out, r *wire.Record, kind wire.Kind, vals []float32) {
	if r.Op == 0 {
		return // asked by the system, nobody waits
	}
	if r.Origin == s.cfg.Self && r.Hops > 0 {
		if remote := s.remoteOf(r.Key); *remote > 0 {
			*remote--
		} else {
			s.Stats.Stale++ // this node has not asked
		}
	}
	a := &s.rec // in place: this is the record that is sent most
	*a = wire.Record{}
	a.Kind, a.Key, a.Op, a.Index, a.Vals = kind, r.Key, r.Op, r.Index, vals
	if kind == wire.PullReply && r.Origin != s.cfg.Self {
		i, _ := s.cfg.Model.Locate(r.Key)
		s.diff = s.cfg.updates[i].Brief(out, a, r, s.diff, &s.Stats)
	}
	out.Send(r.Origin, a)
}

// Replied notes a reply from another node that fits the model. The caller completes the
// operation.
func (s *Shard) Replied(from godwit.NodeID, k godwit.Key) {
	remote := s.remoteOf(k)
	if *remote == 0 {
		s.Stats.Stale++ // it answers nothing
		return
	}
	*remote--
	s.dir.SetHint(k, from)
}

// RepliedEach is Replied of several keys. They may all be known to have their home at the node that replied.
func (s *Shard) RepliedEach(from godwit.NodeID, keys []godwit.Key, home bool) {
	home = home && s.dir.Hintless()
	for _, k := range keys {
		if remote := s.remoteOf(k); home && *remote != 0 {
			*remote--
		} else {
			s.Replied(from, k)
		}
	}
}

// send sends a record through the shard's scratch, so that none escapes.
func (s *Shard) send(out Out, to godwit.NodeID, r wire.Record) {
	s.rec = r
	out.Send(to, &s.rec)
}

// serve carries out a request at the main copy.
func (s *Shard) serve(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	if r.Origin == s.cfg.Self && !ask(r.Kind) {
		s.Stats.Stale++ // this node's own word as a holder, which came after the key itself
		return
	}
	switch r.Kind {
	case wire.Pull:
		s.freshenOrigin(out, h, ref, r)
		s.answerPull(out, h, r)
	case wire.Push:
		s.apply(h, r.Vals, MarkOf(r.Odd))
		s.freshenOrigin(out, h, ref, r)
		s.reply(out, r, wire.Done, nil)
	case wire.Set:
		s.set(h, ref, r)
		s.freshenOrigin(out, h, ref, r)
		s.reply(out, r, wire.Done, nil)
	case wire.Localize:
		s.localize(out, h, ref, r)
	case wire.Interest, wire.Wish:
		s.interest(out, h, ref, r)
	case wire.Delta:
		s.delta(out, h, ref, r)
	case wire.End:
		s.end(out, h, ref, r)
	}
}

// freshenOrigin sends a node that holds a replica, or waits for one, its refresh before
// the answer to its request, on the same path: the node must not read an older value there
// afterwards (R4).
func (s *Shard) freshenOrigin(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	if r.Origin == s.cfg.Self || s.cfg.Broken.NoFreshen {
		return
	}
	if hasSide(h) {
		if x := s.holder(s.main(h), r.Origin); x != nil {
			x.used()
			s.freshen(out, h, ref, x, true)
		}
	}
}

func (s *Shard) set(h *store.Header, ref store.Ref, r *wire.Record) {
	i, _ := s.cfg.Model.Locate(h.Key)
	for _, row := range [][]float32{s.turn(h, MarkOf(r.Odd)), s.st.Floats(ref)} {
		if row != nil {
			copy(row, r.Vals)
			s.begin(i, row)
		}
	}
	if hasSide(h) {
		if x := s.holder(s.main(h), r.Origin); x != nil {
			x.seq = max(x.seq, r.Seq)
		}
	}
	s.renewed(h)
}
