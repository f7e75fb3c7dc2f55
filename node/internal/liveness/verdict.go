package liveness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/wire"
)

// arbiter is the node that suspicions go to.
const arbiter = godwit.NodeID(0)

// A rift is two nodes that do not reach each other, the smaller first.
type rift [2]godwit.NodeID

func riftOf(a, b godwit.NodeID) rift { return rift{min(a, b), max(a, b)} }

// suspect takes note of whom this node does not reach, and tells the arbiter. Those
// of whom it will soon be sure are named with those of whom it is.
func (p *Pulse) suspect() {
	var of []godwit.NodeID
	for id := range p.peers {
		if l := &p.peers[id]; l.suspected || godwit.NodeID(id) != p.links.Self && p.overdue(l, p.lease/2) {
			of = append(of, godwit.NodeID(id))
		}
	}
	p.charge(p.links.Self, of)
	if p.links.Self != arbiter && !slices.Contains(of, arbiter) {
		o := p.links.To(arbiter)
		o.Push(wire.Suspicions(of))
		o.Flush()
	}
}

// Suspicions takes those of a peer.
func (p *Pulse) Suspicions(by godwit.NodeID, frame []byte) error {
	of, err := wire.ParseSuspicions(frame)
	if err != nil {
		return err
	}
	for _, id := range of {
		if p.links.Self != arbiter || int(id) >= len(p.peers) || id == by {
			return fmt.Errorf("told node %d that it suspects node %d of %d", p.links.Self, id, len(p.peers))
		}
	}
	p.charge(by, of)
	return nil
}

// charge notes that a node does not reach others.
func (p *Pulse) charge(by godwit.NodeID, of []godwit.NodeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range of {
		if x := riftOf(by, id); !slices.Contains(p.pairs, x) {
			p.pairs = append(p.pairs, x)
		}
	}
}

// due returns a verdict if it is time for one.
func (p *Pulse) due() *coord.PartitionError {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.pairs) == 0:
		return nil
	case p.verdict == 0 && p.links.Self == arbiter:
		p.verdict = p.clock + collectWait
	case p.verdict == 0:
		p.verdict = p.clock + appealWait
	case p.clock >= p.verdict:
		return verdictOf(p.pairs, p.members, p.lease)
	}
	return nil
}

// verdictOf says which nodes do not reach each other. It names a node that is in
// all of several pairs first.
func verdictOf(pairs []rift, members []coord.Member, lease time.Duration) *coord.PartitionError {
	pairs = slices.Clone(pairs)
	slices.SortFunc(pairs, func(a, b rift) int { return slices.Compare(a[:], b[:]) })
	name := func(id godwit.NodeID) string { return fmt.Sprintf("%d (%s)", id, members[id].Addr) }
	text := ""
	if id, ok := common(pairs); ok && len(pairs) > 1 {
		var others []string
		for _, x := range pairs {
			others = append(others, name(x[0]+x[1]-id))
		}
		text = fmt.Sprintf("node %s reaches none of the nodes %s", name(id), listed(others))
	} else {
		var each []string
		for _, x := range pairs {
			each = append(each, name(x[0])+" and "+name(x[1]))
		}
		text = "nodes " + listed(each) + " do not reach each other"
	}
	return &coord.PartitionError{Text: fmt.Sprintf("%s: nothing moved for %v over the connections between them", text, lease)}
}

// common returns the node that is in all pairs.
func common(pairs []rift) (godwit.NodeID, bool) {
	for _, id := range pairs[0] {
		if !slices.ContainsFunc(pairs, func(x rift) bool { return x[0] != id && x[1] != id }) {
			return id, true
		}
	}
	return 0, false
}

// listed joins names, of which it leaves out the eleventh and all after it.
func listed(names []string) string {
	const few = 10
	if n := len(names); n > few {
		names = append(slices.Clone(names[:few]), fmt.Sprintf("%d more", n-few))
	}
	return strings.Join(names, ", ")
}
