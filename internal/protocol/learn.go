package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol/intent"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// This file makes intents of what workers do without announcing it, where the policy
// learns (placement.LearningPolicy). What to ask for, and when, intent.Learner decides.
//
// L1. A copy is asked for of relaxed tables only, by a Wish in place of an Interest. It is wanted
// as by an intent: there is one want for each wish of the learner.
// L2. Who uses a key without announcing it, its owner does not know: it may be its own workers.
// So a wish moves no key. A bid does, while no node wants the key, to a node that made nearly all
// of the changes of its row. The answer says that the node may ask for the key, as by Localize. A
// bid that does not reach the owner is forgotten.

// Missed takes note of accesses of this node's workers to a key, by requests that were just
// sent: so many, of which each cost so much (intent.Learner).
func (s *Shard) Missed(out Out, k godwit.Key, push bool, times, cost uint32) {
	if _, here := s.st.Find(k); here {
		return // it is on its way, or has come meanwhile
	}
	switch s.learner.Missed(k, push, s.copies(k), times, cost) {
	case intent.Copy:
		s.wishing = Wishing{s.learner.Last(), !s.roomForWish(out)}
		s.tellDecided(Decision{Key: k, Wishing: &s.wishing})
		if !s.wishing.Full {
			s.wish(out, k)
		}
	case intent.Bid:
		s.wishing = Wishing{Miss: s.learner.Last()}
		s.tellDecided(Decision{Key: k, Wishing: &s.wishing})
		since, pushes := s.learner.TakeBid(k)
		s.send(out, s.next(k, 0), wire.Record{Kind: wire.Bid, Key: k, Version: since, Seq: pushes})
	}
}

// copies reports whether this node may ask for a copy of a key that nobody announced (L1).
func (s *Shard) copies(k godwit.Key) bool {
	i, _ := s.cfg.Model.Locate(k)
	return s.cfg.relaxed[i] || s.cfg.Broken.CopyStrict
}

// wish asks for a copy.
func (s *Shard) wish(out Out, k godwit.Key) {
	s.Stats.Learned++
	s.learner.Wish(k)
	s.want(out, k, placement.Copy)
}

// wishes is how many wishes a shard may have in any case, and looks at how many of them it
// looks for one that can end.
const (
	wishes = 256
	looks  = 8
)

// roomForWish reports whether a copy may be asked for. As many keys may be here by wishes as
// otherwise, so that what is learned does not take more than a bounded part of the memory.
// Beyond that, one must end that was not used since it was looked at last.
func (s *Shard) roomForWish(out Out) bool {
	n := s.learner.Wishes()
	if n < max(wishes, s.st.Len()-n) {
		return true
	}
	for range looks {
		k := s.learner.Oldest()
		x := s.learner.Worth(k, s.takeUses(k), 0)
		if x.Needed = true; x.Goes() {
			s.learner.Weigh(k, &x)
			continue
		}
		s.giveUp(out, k, &x)
		return true
	}
	return false
}

func (s *Shard) endWish(out Out, k godwit.Key) {
	s.learner.End(k)
	s.unwant(out, k)
}

// endWishHere ends the wish for a key that has moved here, if there is one.
func (s *Shard) endWishHere(out Out, k godwit.Key) {
	if s.learner.Has(k) {
		s.endWish(out, k)
	}
}

// exchanged returns how many records of rounds an answer to a replica, which was not taken
// yet, stands for: itself, and the update that it acknowledges.
func (s *Shard) exchanged(h *store.Header, r *wire.Record) int {
	if stateOf(h) == inFlight && s.replica(h).sent <= r.Seq {
		return 2
	}
	return 1
}

// weigh takes note that rounds exchanged records of a key. A wish that is not worth that ends.
func (s *Shard) weigh(out Out, k godwit.Key, records int) {
	if !s.learner.Has(k) {
		return
	}
	x := s.learner.Worth(k, s.takeUses(k), records)
	if s.learner.Weigh(k, &x); !x.Goes() {
		s.giveUp(out, k, &x)
	}
}

// giveUp ends a wish that is not worth it.
func (s *Shard) giveUp(out Out, k godwit.Key, x *intent.Worth) {
	s.ending = *x
	s.tellDecided(Decision{Key: k, Ending: &s.ending})
	s.endWish(out, k)
}

// replicaOf returns the side of a key's replica, nil if none is here.
func (s *Shard) replicaOf(k godwit.Key) *replicaSide {
	if ref, ok := s.st.Find(k); ok {
		if h := s.st.Header(ref); stateOf(h).isReplica() {
			return s.replica(h)
		}
	}
	return nil
}

// takeUses returns the accesses of this node's workers to a replica since the last call.
func (s *Shard) takeUses(k godwit.Key) (n uint32) {
	if d := s.replicaOf(k); d != nil {
		n, d.uses = d.uses, 0
	}
	return n
}

// Used takes note that this node's workers have pulled a key about n times. Pulls of keys
// that are here leave no trace in a shard: of them, callers count samples.
func (s *Shard) Used(k godwit.Key, n uint32) {
	if s.learner.Has(k) {
		if d := s.replicaOf(k); d != nil {
			d.uses += n
		}
	}
}

// bid answers a node that says how many of the changes of a key it makes (L2).
func (s *Shard) bid(out Out, from godwit.NodeID, r *wire.Record) {
	ref, ok := s.find(r.Key)
	if !ok || stateOf(s.st.Header(ref)) != owner {
		s.Stats.Stale++
		return
	}
	h := s.st.Header(ref)
	a := wire.Record{Kind: wire.BidReply, Key: r.Key}
	if !s.wins(h, from, r) {
		h.Version = max(h.Version, 1) // 0 is that the bid wins
		a.Version = h.Version
	}
	s.send(out, from, a)
}

// wins reports whether a bid wins.
func (s *Shard) wins(h *store.Header, from godwit.NodeID, r *wire.Record) bool {
	if r.Version == 0 {
		return false // it only asks for the version
	}
	s.placing = Placing{Situation: s.situation(h, placement.Move, from), Bid: true, Since: r.Version, Present: h.Version, Pushes: r.Seq}
	if intent.Wins(r.Version, h.Version, r.Seq) {
		s.judge(nil, h)
	}
	return s.placed(h).Verb == placement.Relocate
}

// bidAnswered takes the owner's answer to a bid. A key that was won is asked for, and requests
// wait for it from then on: if it came without having been asked for, it could overtake
// requests that are under way.
func (s *Shard) bidAnswered(out Out, r *wire.Record) {
	k := r.Key
	if !s.learner.BidAnswered(k, r.Version) {
		s.Stats.Stale++
		return
	}
	if _, here := s.st.Find(k); here || r.Version != 0 || s.next(k, 0) == s.cfg.Self {
		return
	}
	s.Stats.Learned++
	s.askOwner(out, s.becomePlaceholder(k, placement.Move, out.Now()))
}
