package protocol

import (
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// This file carries out a node's intents: it asks for keys that are not here, and goes on
// when they come, leave or are refused.

// Want notes that an intent of a worker of this node for the key became due.
// Every Want is followed by one Unwant.
func (s *Shard) Want(out Out, k godwit.Key) {
	if a := s.cfg.Policy.OnIntent(s.cfg.hot(k)); a != placement.Nothing {
		s.want(out, k, a)
	}
}

// Moves reports whether nodes ask for keys as moves because of intents: also away from nodes that want them.
func (c *Config) Moves() bool {
	return c.Policy.OnIntent(false) == placement.Move || c.Policy.OnIntent(true) == placement.Move
}

// WantAgain notes that one more intent became due for a key that is wanted. It asks for the key if that was taken away meanwhile.
func (s *Shard) WantAgain(out Out, k godwit.Key) {
	a := s.cfg.Policy.OnIntent(s.cfg.hot(k))
	if a == placement.Nothing {
		return
	}
	if r, ok := s.find(k); ok {
		if h := s.st.Header(r); s.wants(h) > 0 {
			if stateOf(h) == frozen {
				s.main(h).ask = a
			}
			return
		}
	}
	s.want(out, k, a)
}

// Hold asks for a replica that stays for the rest of the run.
func (s *Shard) Hold(out Out, k godwit.Key) { s.want(out, k, placement.Copy) }

func (s *Shard) want(out Out, k godwit.Key, a placement.Ask) {
	r, ok := s.find(k)
	if !ok {
		h := s.becomePlaceholder(k, a, out.Now())
		s.side(h).want++
		s.tell(Wanted, k, s.cfg.Self, 0)
		s.askOwner(out, h)
		return
	}
	h := s.st.Header(r)
	s.endIdle(h)
	n := s.wants(h) + 1
	s.setWants(h, n)
	if n == 1 {
		s.tell(Wanted, k, s.cfg.Self, h.Epoch)
	}
	if stateOf(h) == frozen {
		s.main(h).ask = a
	}
}

// askOwner asks for the key of a placeholder: now, or by AskDue if there is no room for
// the answer.
func (s *Shard) askOwner(out Out, h *store.Header) {
	if !s.ask(out, h) {
		s.placeholder(h).due = true
		s.due = append(s.due, h.Key)
	}
}

// ask asks for the key of a placeholder, and reports false if there is no room for the
// answer.
func (s *Shard) ask(out Out, h *store.Header) bool {
	k, p := h.Key, s.placeholder(h)
	to := s.next(k, 0)
	if !out.Ask(to, s.cfg.Model.RowLen(k)) {
		return false
	}
	p.askedOf, p.due = to, false
	s.tell(Asked, k, to, 0)
	if p.ask == placement.Copy {
		s.seq++
		p.first = s.seq
		kind := wire.Interest
		if s.learner.Has(k) {
			kind = wire.Wish
		}
		s.send(out, to, wire.Record{Kind: kind, Key: k, Origin: s.cfg.Self, Seq: s.seq, Hops: 1})
		return true
	}
	s.send(out, to, wire.Record{Kind: wire.Localize, Key: k, Origin: s.cfg.Self, Hops: 1})
	return true
}

// answered notes that the answer to ask has come: its row no longer counts as asked for.
func (s *Shard) answered(out Out, h *store.Header) {
	p := s.placeholder(h)
	if p.askedOf != godwit.NoNode {
		out.Got(p.askedOf, s.cfg.Model.RowLen(h.Key))
	}
	p.askedOf, p.due = godwit.NoNode, false
}

// AskDue asks for keys for which there was no room before. There is some when an
// answer has come.
func (s *Shard) AskDue(out Out) {
	listed := s.due
	s.due = nil
	s.behind = s.behind[:0]
	for i, k := range listed {
		if len(s.behind) >= s.cfg.Nodes-1 && s.cfg.Nodes > 0 {
			s.due = append(s.due, listed[i:]...)
			return
		}
		ref, ok := s.st.Find(k)
		if !ok {
			continue
		}
		h := s.st.Header(ref)
		switch {
		case stateOf(h) != placeholder || !s.placeholder(h).due:
		case s.side(h).want == 0:
			s.again(out, h, placement.Nothing) // nobody wants it any more
		case !s.ask(out, h):
			s.due = append(s.due, k)
			if to := s.next(k, 0); !slices.Contains(s.behind, to) {
				s.behind = append(s.behind, to)
			}
		}
	}
}

// Unwant notes that an intent of a worker of this node ended.
func (s *Shard) Unwant(out Out, k godwit.Key) {
	if s.cfg.Policy.OnIntent(s.cfg.hot(k)) != placement.Nothing { // else it was never asked for
		s.unwant(out, k)
	}
}

// UnwantOwned is Unwant of a key whose main copy is here, or of which there is no row. It reports whether it is one.
func (s *Shard) UnwantOwned(out Out, k godwit.Key) (ended bool) {
	if r, ok := s.st.Find(k); ok && stateOf(s.st.Header(r)) != owner {
		return false
	}
	s.Unwant(out, k)
	return true
}

func (s *Shard) unwant(out Out, k godwit.Key) {
	r, ok := s.st.Find(k)
	if !ok {
		return // moved away meanwhile
	}
	h := s.st.Header(r)
	n := s.wants(h)
	if n == 0 || stateOf(h).isReplica() && s.replica(h).is(idle) {
		return // the intent was refused, or its key went: what counts here is no intent's
	}
	s.setWants(h, n-1)
	if n > 1 {
		return
	}
	s.tell(Unwanted, k, s.cfg.Self, h.Epoch)
	switch st := stateOf(h); {
	case st.isReplica():
		if !s.idles(h) {
			s.drain(out, h, r)
		}
	case st == owner && !s.holdsIdle(h):
		s.decide(out, h, r)
	}
}

// arrived notes that the row of a placeholder has come, and takes the lead time.
func (s *Shard) arrived(out Out, h *store.Header) {
	s.answered(out, h)
	if since := s.placeholder(h).since; since != 0 {
		lead := uint64(max(0, out.Now()-since))
		s.Stats.LeadNanos += lead
		s.Stats.Leads.Observe(lead / 1000)
		s.Stats.LeadActions++
	}
}

// again removes the row of a key that has left. If workers want the key, and ask is not
// Nothing, the key is asked for anew, and requests that wait here wait on for it. Else
// they follow the key.
func (s *Shard) again(out Out, h *store.Header, ask placement.Ask) {
	k, d := h.Key, s.side(h)
	want, queue := d.want, d.takeQueue()
	s.becomeAbsent(h)
	if want > 0 && ask != placement.Nothing {
		h := s.becomePlaceholder(k, ask, out.Now())
		d := s.side(h)
		d.want, d.queue = want, queue
		s.askOwner(out, h)
		return
	}
	if want > 0 {
		s.tell(Unwanted, k, s.cfg.Self, 0)
		s.learner.End(k)
	}
	s.resume(out, k, queue, false)
}

// refused takes the owner's word that it neither moves the key nor gives a
// copy. Requests to move it are done.
func (s *Shard) refused(out Out, h *store.Header, from godwit.NodeID) {
	if stateOf(h) != placeholder {
		s.Stats.Stale++
		return
	}
	s.Stats.Refused++
	s.tell(Refused, h.Key, from, 0)
	s.dir.SetHint(h.Key, from)
	s.answered(out, h)
	d := s.side(h)
	r := s.borrowRecord()
	s.each(d.takeQueue(), func(i uint32) bool {
		if w := s.waiters.at(i); w.kind == wire.Localize && w.origin == s.cfg.Self {
			s.recall(h.Key, w, r)
			s.waiters.give(i)
			s.reply(out, r, wire.Done, nil)
		} else {
			s.enqueue(d, i)
		}
		return true
	})
	s.returnRecord(r)
	hot, next := s.cfg.hot(h.Key), placement.Nothing
	if s.placeholder(h).ask == placement.Move && (s.cfg.Policy.OnIntent(hot) == placement.Copy || s.cfg.Policy.Everywhere(hot)) {
		next = placement.Copy // the key does not move, but a copy can still be had
	}
	s.again(out, h, next)
}
