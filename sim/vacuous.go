package sim

import (
	"fmt"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// enoughSeeds is of how many storms one meets, by far, whatever its policy is
// there for: the rarest kind of event comes several times in so many.
const enoughSeeds = 100

// Vacuous says what storms of this config are there to stress and did not meet,
// so that their success means nothing. It is nil where they met everything, and
// where too little was run to tell: fewer than 100 seeds, one node, or fewer steps
// than by default.
func (r *StormsReport) Vacuous(w StormConfig) error {
	if r.Seeds < enoughSeeds || w.Nodes == 1 || w.Steps != 0 && w.Steps < defaultSteps {
		return nil
	}
	var missed []string
	for _, x := range r.stressed(w) {
		if x.wanted && x.met == 0 {
			missed = append(missed, x.what)
		}
	}
	if missed == nil {
		return nil
	}
	return fmt.Errorf("%d storms under %s kept all promises, but tell little: %s", r.Seeds, policyName(w.Policy), strings.Join(missed, ", "))
}

// A stress is a kind of event, as an error names its absence.
type stress struct {
	what   string
	wanted bool
	met    uint64
}

func (r *StormsReport) stressed(w StormConfig) []stress {
	does := func(may func(placement.Policy) bool) bool { return w.Policy == nil || may(inStorms(w.Policy)) }
	s, c := &r.sum, &r.gaveUp
	return []stress{
		{"no key was accessed at another node", !does(everywhere), s.Remote},
		{"no key moved", does(mayMove), s.Moves},
		{"no replica was set up", does(replicates), s.Copies},
		{"no replica was read or written", does(replicates), s.Replica},
		{"no replica was dropped", does(drops), s.Drops},
		{"no access was served by a value that had been fetched ahead", w.Policy != nil && placement.FetchesAhead(w.Policy) && w.Nodes != 1, s.Ahead},
		{"no access waited for a key on its way", does(mayMove), s.Queued},
		{"no request was forwarded", does(mayMove) && w.Nodes != 2, s.Forwards}, // of two nodes, the other one has it,
		{"no read was judged by its age", w.Policy != nil && placement.FetchesAhead(w.Policy) && w.Nodes != 1, uint64(r.aged)},
		{"no range was scanned", true, uint64(r.scanned.Keys)},
		{"no sample was drawn", true, s.Sampled.Accesses()},
		{"no call was cancelled", true, uint64(c.Contexts)},
		{"no pull that waited was cancelled", !does(everywhere), uint64(c.Pulls)},
		{"no push that waited was cancelled", !does(everywhere), uint64(c.Pushes)},
		{"no WaitSync that waited was cancelled", true, uint64(c.Syncs)},
		{"no barrier that waited was cancelled", true, uint64(c.Barriers)},
		{"no helper took part in a round or a look at intents", does(mayMove) || does(replicates), s.Helped},
		{"nothing was learned", w.Policy != nil && placement.Learns(w.Policy), s.Learned},
		{"no filter saw a value", w.Filters == nil && !does(everywhere) || rewrites(w.Filters), s.FilterIn},
		{"no filter held a push back", w.Filters == nil && !does(everywhere), s.HeldBack},
		{"no filter rounded a fraction", w.Filters == nil, uint64(r.rounded)},
		{"no call waited for a bound", w.Bounded, s.Blocked},
		{"no pull waited for the clock that it depends on", w.Bounded, s.Parked},
		{"no read had to contain another worker's push", w.Bounded, uint64(r.judged.Owed)},
		{"no bound was changed", w.Bounded, uint64(r.rebound)},
	}
}

func policyName(p placement.Policy) string {
	if p == nil {
		return "all policies"
	}
	return inStorms(p).Name()
}

// rewrites reports whether a filter changes values or how they are written.
func rewrites(fs []godwit.Filter) bool {
	for _, f := range fs {
		if _, frames := f.(interface {
			Pack(dst, src []byte) ([]byte, error)
		}); !frames {
			return true
		}
	}
	return false
}

// everywhere reports whether a policy has every key at every node from the start.
func everywhere(p placement.Policy) bool { return p.Everywhere(true) && p.Everywhere(false) }

// mayMove reports whether a policy ever moves a key.
func mayMove(p placement.Policy) bool { return decides(p, placement.Relocate) }

// replicates reports whether a policy replicates what nodes ask copies of.
func replicates(p placement.Policy) bool { return mayCopy(p) && decides(p, placement.Replicate) }

// drops reports whether replicas of a policy go when nobody wants them any more.
func drops(p placement.Policy) bool {
	return replicates(p) && (p.OnIntent(true) == placement.Copy || p.OnIntent(false) == placement.Copy)
}

// decides reports whether a policy ever decides so.
func decides(p placement.Policy, v placement.Verb) bool {
	for _, others := range [][]godwit.NodeID{nil, {1}, {1, 2}} {
		for _, asked := range []placement.Ask{placement.Nothing, placement.Copy, placement.Move} {
			for i := range 4 {
				s := placement.Situation{SelfWants: i&1 != 0, Hot: i&2 != 0, Others: others, Asked: asked, Asker: 1}
				if p.Decide(s).Verb == v {
					return true
				}
			}
		}
	}
	return false
}
