// Package replay decides again what a trace says that was decided, from what is recorded beside each decision.
package replay

import (
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/protocol/intent"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// Check returns an error if the pure functions by which nodes decide, under a policy, decide something else from what is recorded
// of a decision than what is recorded as decided.
func Check(p placement.Policy, e *trace.Event) error {
	d := e.Decision
	var done trace.Choice
	to := e.Node
	switch {
	case d == nil:
		return fmt.Errorf("replay: event %v of key %d at node %d is no decision", e.Kind, e.Key, e.Node)
	case d.Placed != nil:
		placing, err := placingOf(p, e.Node, d.Placed)
		if err != nil {
			return fmt.Errorf("replay: key %d at node %d: %w", e.Key, e.Node, err)
		}
		a := placing.Done()
		if done = choices[a.Verb]; done == trace.MoveTo {
			to = a.To
		}
	case d.Learned != nil:
		l := d.Learned
		w := protocol.Wishing{Full: l.Full, Miss: intent.Miss{Copies: l.Copies, Asked: l.Asked, Known: l.Known, Patience: l.Patience, Cost: l.Cost, Seen: l.Seen, Pulls: l.Pulls, Pushes: l.Pushes}}
		done = advices[w.Done()]
	case d.Ended != nil:
		x := d.Ended
		w := intent.Worth{Credit: x.Credit, Saves: x.Saves, Saved: x.Saved, Records: x.Records, Needed: x.Needed}
		if done = trace.Stay; !w.Goes() {
			done = trace.EndCopy
		}
	case d.Planned != nil:
		x := d.Planned
		u := intent.Use{Pace: intent.Pace{Took: int64(x.Took), Long: int64(x.Long), Fetched: x.Fetched}, Step: x.Step}
		if done = trace.FetchAhead; u.Means() != intent.Fetch {
			done = asks[p.OnIntent(x.Hot)]
		}
	}
	if done != d.Done || to != d.To {
		return fmt.Errorf("replay: node %d decided %v (node %d) about key %d at clock %d, from the same it follows %v (node %d)", e.Node, d.Done, d.To, e.Key, e.Clock, done, to)
	}
	return nil
}

var (
	choices = map[placement.Verb]trace.Choice{placement.Keep: trace.Stay, placement.Relocate: trace.MoveTo, placement.Replicate: trace.GiveCopy}
	advices = map[intent.Advice]trace.Choice{intent.Stay: trace.Stay, intent.Copy: trace.AskCopy, intent.Bid: trace.BidFor}
	asks    = map[placement.Ask]trace.Choice{placement.Nothing: trace.Stay, placement.Copy: trace.AskCopy, placement.Move: trace.AskKey}
)

// placingOf asks the policy again, and returns an error if it chooses something else.
func placingOf(p placement.Policy, self godwit.NodeID, x *trace.Placed) (protocol.Placing, error) {
	s := placement.Situation{Self: self, Unmoved: x.Unmoved, SelfWants: x.Wanted, Others: x.Others, Asker: x.Asker, Hot: x.Hot}
	for ask, c := range asks {
		if c == x.Asked {
			s.Asked = ask
		}
	}
	if s.Asked == placement.Nothing {
		s.Asker = godwit.NoNode
	}
	placing := protocol.Placing{Situation: s, Fixed: x.Fixed, Full: x.Full, Bid: x.Bid, Since: godwit.Version(x.Since), Present: godwit.Version(x.Present), Pushes: uint64(x.Pushes)}
	if x.Bid && !intent.Wins(placing.Since, placing.Present, placing.Pushes) {
		return placing, nil // the policy is not asked
	}
	placing.Chosen = p.Decide(s)
	to := self
	if placing.Chosen.Verb == placement.Relocate {
		to = placing.Chosen.To
	}
	if choices[placing.Chosen.Verb] != x.Chosen || to != x.ChosenTo {
		return placing, fmt.Errorf("the policy chose %v (node %d), and chooses %v (node %d) in the same situation", x.Chosen, x.ChosenTo, choices[placing.Chosen.Verb], to)
	}
	return placing, nil
}
