package placement_test

import (
	"fmt"

	"github.com/godwit-ps/godwit/placement"
)

// A quorum policy replicates a key as soon as a number of other nodes wants it.
type quorum struct{ nodes int }

// Quorum is known to specs and command lines as "quorum", or "quorum(nodes=3)".
var Quorum = placement.Register(quorum{})

func (q quorum) Name() string {
	return placement.Write("quorum", placement.Param{Key: "nodes", Value: float64(q.nodes)})
}

func (quorum) With(p *placement.Params) placement.Policy { return quorum{p.Int("nodes")} }

func (quorum) OnIntent(bool) placement.Ask { return placement.Copy }
func (quorum) Everywhere(bool) bool        { return false }

func (q quorum) Decide(s placement.Situation) placement.Action {
	most := max(q.nodes, 2)
	if s.Asked == placement.Copy && len(s.Others) >= most {
		return placement.Action{Verb: placement.Replicate}
	}
	return placement.Action{Verb: placement.Keep}
}

func ExampleRegister() {
	p, err := placement.ByName("quorum(nodes=3)")
	fmt.Println(p.Name(), err)
	_, err = placement.ByName("quorum(votes=3)")
	fmt.Println(err)
	// Output:
	// quorum(nodes=3) <nil>
	// placement: policy "quorum(votes=3)": it has no parameter votes, only nodes
}
