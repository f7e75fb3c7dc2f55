package dashboard

import (
	"fmt"
	"strings"

	"github.com/godwit-ps/godwit/internal/plural"
)

// pictures says what to see in the picture of a policy, by its name.
var pictures = map[string]struct{ title, text string }{
	"static": {"Every key stays at its home", "The classic parameter server. In the allocation view each row has one colour from left to right: no key ever moves, and there are no replicas. " +
		"Whoever uses a key of another node asks for it, so the bars of the overview show workers that wait for answers, or values fetched ahead. In the cluster view look at the accesses that were missed."},
	"replicate": {"Every node has every key", "Static full replication. No colour ever changes, and each key has a replica at all other nodes, so no access waits. The price is in the cluster view: each update is sent " +
		"to all nodes, whether they use the key or not. Look at the refreshes, and in the overview at the share of them that nobody read."},
	"relocate": {"A key is where it is used, one place at a time", "Keys move to whoever announced them last, and there are no replicas. In the allocation view rows change their colour all the time. Keys that several nodes " +
		"use at once move back and forth: sort by moves, and open the life of the first one. Workers wait while a key is on its way."},
	"nonuniform": {"Hot keys are everywhere, the others move", "Keys that are accessed much more often than the mean are replicated at all nodes from the start; all others relocate. Sort by heat: the hottest rows have replicas and " +
		"keep their colour, the rows below change it. The line between the two was drawn before training."},
	"adaptive-move-only": {"Keys move as intents say, and are never replicated", "A key moves to whoever wants it. A key that several nodes want at once has one owner still, and the others wait for it: sort by moves, and look for rows that change their colour " +
		"all the time."},
	"adaptive-replicate-only": {"Keys are replicated as intents say, and never move", "Rows keep the colour of their homes, and replicas come and go with intents. A key that one other node uses alone " +
		"costs a replica and its refreshes, where a move would be free."},
	"stale": {"Whoever reads a key keeps a copy for a while", "A cache with bounded staleness. Keys stay at their homes; replicas come with reads, and go when they were not read for some clocks. In the life of a key the lanes of replicas " +
		"follow the accesses, never precede them: the first read after a pause waits."},
	"adapm": {"Each key moves or is replicated as it is used", "The intents of workers decide, key by key and moment by moment. A key that one node wants moves there, a key that several want is replicated while they want it. In the affinity view " +
		"rare keys move and hot ones have replicas, and nobody set a threshold. In the life of a key the lanes of intents precede moves and replicas: they are there when the access comes."},
	"adaptive": {"What is cheapest for each key", "A key moves to the node that uses it, is replicated where several use it, or is fetched ahead of a single use, whichever costs least. Workers announce what they will use, and where they do not, nodes learn it. " +
		"Where a message costs little, as between processes of one machine, few keys move, so the picture may be quiet. That is the cheapest picture here, not a fault."},
}

// tour answers with the runs of the folder as the steps of a tour, if there are several: in the order in which they began, with
// what to see in each.
func (s *Server) tour(*request) (any, error) {
	found, err := s.runs.folders()
	if err != nil {
		return nil, err
	}
	steps := []object{}
	for _, f := range found {
		policy := f.header.Policy
		name, _, _ := strings.Cut(policy, "(")
		x, ok := pictures[name]
		switch {
		case f.header.Nodes == 1:
			x.title, x.text = "One node, for comparison", "All keys are at the only node, so nothing moves and nobody waits for another one. Its loss and its time are what the runs of several nodes are measured by: see the comparison."
		case !ok:
			x.title, x.text = "Policy "+policy, "Look at the allocation over time, and open the life of a key that has another colour at the end than at the begin."
		}
		steps = append(steps, object{"run": f.name, "policy": policy, "title": fmt.Sprintf("%s (%s)", x.title, plural.Of(f.header.Nodes, "node")), "text": x.text})
	}
	if len(steps) < 2 {
		steps = []object{}
	}
	return object{"steps": steps}, nil
}
