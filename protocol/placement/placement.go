// Package placement decides, key by key, who holds what: it is the policies of
// Godwit, one a file. A policy is a pure function of a [Situation]; the
// mechanism (package protocol) carries out what it says.
package placement

import (
	"fmt"
	"sort"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/named"
)

// An Ask is what a node asks a key's owner for.
type Ask uint8

const (
	Nothing Ask = iota // leave the key where it is
	Copy               // tell the owner that this node is interested (wire.Interest)
	Move               // ask for the key itself (wire.Localize)
)

// A Key's Situation is what its owner knows when something about the interest
// in the key changed.
type Situation struct {
	// Self is the owner, the node that decides.
	Self godwit.NodeID
	// SelfWants tells whether a worker of the owner has an active intent.
	SelfWants bool
	// Others are the other nodes that hold or want a copy, in order of asking.
	Others []godwit.NodeID
	// Asked is what Asker just asked for; Nothing when an interest ended.
	Asked Ask
	Asker godwit.NodeID
	// Hot tells whether the key is hot, by the policy's HotRule.
	Hot bool
}

// A Verb is what to do with a key.
type Verb uint8

const (
	Keep      Verb = iota // main copy stays; an asker that holds no copy gets none
	Relocate              // main copy moves to Action.To
	Replicate             // main copy stays; an asker gets a replica
)

// An Action is a policy's decision.
type Action struct {
	Verb Verb
	To   godwit.NodeID // of Relocate
}

// A Policy decides. Policies are immutable values.
type Policy interface {
	// Name is how the command line and reports call the policy.
	Name() string
	// OnIntent says what a node asks for when an intent becomes due.
	OnIntent(hot bool) Ask
	// Everywhere says whether every node holds a replica from the start, as if
	// it had an intent for ever.
	Everywhere(hot bool) bool
	// Decide is called at the owner when a node asks for a copy or for the key,
	// and when a node's interest ends.
	Decide(s Situation) Action
}

// policies by name.
var policies = map[string]Policy{}

func register(p Policy) Policy {
	policies[p.Name()] = p
	return p
}

// ByName returns the policy of a name, which may be followed by parameters
// where the policy has any.
func ByName(text string) (Policy, error) {
	name, params, err := named.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("placement: policy %q: %w", text, err)
	}
	p, ok := policies[name]
	if !ok {
		return nil, fmt.Errorf("placement: no policy %q, there are %s", name, strings.Join(Names(), ", "))
	}
	if x, ok := p.(interface{ with(*named.Params) Policy }); ok {
		p = x.with(params)
	}
	if err := params.End(); err != nil {
		return nil, fmt.Errorf("placement: policy %q: %w", text, err)
	}
	return p, nil
}

// Names lists the policies.
func Names() []string {
	var ns []string
	for n := range policies {
		ns = append(ns, n)
	}
	sort.Strings(ns)
	return ns
}
