package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol/intent"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/placement"
)

// This file tells an observer what was decided about keys, and from what (Config.Decided). What is told is all
// that the decision depends on: each is a pure function of it, which can be computed again.

// A Placing is what the owner of a key decides about it from.
type Placing struct {
	Situation placement.Situation
	Chosen    placement.Action // by the policy, which was asked about the situation
	Fixed     bool             // the key cannot move now: a cut has still to save it, or its epochs are used up, or the run has no such node
	Full      bool             // a node to which the move would send a row takes none now
	Bid       bool             // the asker did not announce the key, and has bid for it (L2):
	Since     godwit.Version   // … it knows this version of the row,
	Present   godwit.Version   // … which has this one now,
	Pushes    uint64           // … and made so many of the changes
}

// Done returns what is done: what the policy chose, or to keep the key where that is not possible. A key that
// was asked for only moves to its asker, and a replica is only given to who asked for one.
func (p *Placing) Done() placement.Action {
	keep, s := placement.Action{Verb: placement.Keep}, &p.Situation
	switch a := p.Chosen; {
	case p.Bid && !intent.Wins(p.Since, p.Present, p.Pushes):
		return keep
	case a.Verb == placement.Relocate && (p.Fixed || p.Full || a.To == s.Self || s.Asked == placement.Move && a.To != s.Asker),
		a.Verb == placement.Replicate && s.Asked != placement.Copy:
		return keep
	case a.Verb == placement.Relocate:
		return a
	}
	return placement.Action{Verb: p.Chosen.Verb}
}

// A Wishing is what a node decides from whether to ask for a key that nobody announced.
type Wishing struct {
	intent.Miss
	Full bool // there is no room for one more copy
}

// Done returns what is done.
func (w *Wishing) Done() intent.Advice {
	a := w.Advice()
	if a == intent.Copy && w.Full {
		return intent.Stay
	}
	return a
}

// A Decision is what was decided about a key, by one of these, of which the others are nil. They are valid during the call.
type Decision struct {
	Key     godwit.Key
	Epoch   godwit.Epoch // of the key's ownership, as far as this node knows it
	Placing *Placing
	Wishing *Wishing
	Ending  *intent.Worth // of a copy that was asked for without being announced, and is given up
}

// tellDecided tells the observer what was decided. Where there is none, it costs one branch.
func (s *Shard) tellDecided(d Decision) {
	if s.cfg.Decided != nil {
		s.cfg.Decided(d)
	}
}

// place asks the policy about a key, and returns what is to be done.
func (s *Shard) place(out Out, h *store.Header, asked placement.Ask, asker godwit.NodeID) placement.Action {
	s.placing = Placing{Situation: s.situation(h, asked, asker)}
	s.judge(out, h)
	return s.placed(h)
}

// judge fills in what the policy chooses, and whether that can be.
func (s *Shard) judge(out Out, h *store.Header) {
	p := &s.placing
	p.Chosen = s.cfg.Policy.Decide(p.Situation)
	if to := p.Chosen.To; p.Chosen.Verb == placement.Relocate {
		p.Fixed = h.Epoch == lastEpoch || s.stays(h) || to != s.cfg.Self && !s.cfg.mayMove(h.Key, to)
		p.Full = out != nil && !p.Fixed && to != s.cfg.Self && !s.canMove(out, h, to, p.Situation.Asker)
	}
}

// placed tells of the decision, and returns what is to be done.
func (s *Shard) placed(h *store.Header) placement.Action {
	s.tellDecided(Decision{Key: h.Key, Epoch: h.Epoch, Placing: &s.placing})
	return s.placing.Done()
}
