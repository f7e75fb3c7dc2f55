package main

import "github.com/godwit-ps/godwit/placement"

// A quorum policy replicates a key once several other nodes want it at a time, and
// leaves it at its home until then. It is chosen by its name, with its parameter:
// --policy "quorum(nodes=3)".
type quorum struct{ nodes int }

func init() { placement.Register(quorum{}) }

func (q quorum) Name() string {
	return placement.Write("quorum", placement.Param{Key: "nodes", Value: float64(q.nodes)})
}

func (quorum) With(p *placement.Params) placement.Policy { return quorum{p.Int("nodes")} }

func (quorum) OnIntent(bool) placement.Ask { return placement.Copy }
func (quorum) Everywhere(bool) bool        { return false }

func (q quorum) Decide(s placement.Situation) placement.Action {
	least := q.nodes
	if least == 0 {
		least = 2
	}
	if s.Asked == placement.Copy && len(s.Others) >= least {
		return placement.Action{Verb: placement.Replicate}
	}
	return placement.Action{Verb: placement.Keep}
}
