// Package restless is a policy that a sensible one would not be: it moves keys
// under their holders' feet, to whoever asks. The mechanism must carry it out
// all the same, and storms meet under it what is rarest.
package restless

import "github.com/godwit-ps/godwit/placement"

// Policy is the policy. It is not registered: nobody should train with it.
type Policy struct{}

func (Policy) Name() string                { return "restless" }
func (Policy) OnIntent(bool) placement.Ask { return placement.Copy }
func (Policy) Everywhere(bool) bool        { return false }

// Decide depends on nothing but the situation, and makes no sense.
func (Policy) Decide(s placement.Situation) placement.Action {
	mood := 7*int(s.Self) + 3*len(s.Others) + 5*int(s.Asker)
	switch {
	case s.Asked == placement.Copy && mood%3 == 0 && !s.SelfWants, s.Asked == placement.Move && mood%4 > 0:
		return placement.Action{Verb: placement.Relocate, To: s.Asker}
	case s.Asked == placement.Copy:
		return placement.Action{Verb: placement.Replicate}
	}
	return placement.Action{Verb: placement.Keep}
}
