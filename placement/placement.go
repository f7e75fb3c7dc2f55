// Package placement decides, key by key, who holds what: it is the policies of
// Godwit, one a file. A run has one policy: [Adaptive], unless it names another
// ([ByName]). A [Policy] is a pure function of a [Situation], what the owner of a
// key knows; the protocol between the nodes carries out the [Action] that it
// returns.
//
//	policy       system                   decision for a key
//	static       classic servers          stays at its home
//	replicate    full replication         every node has a copy
//	relocate     Lapse (PVLDB 2020)       moves to the node that asked last
//	nonuniform   NuPS (SIGMOD 2022)       copied everywhere if hot, else as relocate
//	stale        Petuum (NIPS 2013)       copied to nodes that read it
//	adapm        AdaPM (CIKM 2023)        wanted by one node: moves there; by several: copied; by none: stays
//	adaptive     Godwit                   as it costs least: fetched ahead of each use, moved, copied
//
// Programs add policies of their own by [Register].
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

// A Situation is what a key's owner knows when something about the interest
// in the key changed.
type Situation struct {
	// Self is the owner, the node that decides.
	Self godwit.NodeID
	// Unmoved tells whether the key has never moved: the owner is its home.
	Unmoved bool
	// SelfWants tells whether a worker of the owner has an active intent.
	SelfWants bool
	// Others are the other nodes that hold or want a copy, in order of asking.
	Others []godwit.NodeID
	// Asked is what Asker just asked for; Nothing when an interest ended, or an update came.
	Asked Ask
	// Asker is the node that asked, or whose interest ended.
	Asker godwit.NodeID
	// Hot tells whether the key is hot, by the policy's HotRule.
	Hot bool
}

// A Verb is what to do with a key.
type Verb uint8

const (
	Keep      Verb = iota // main copy stays; an asker that holds no copy gets none
	Relocate              // main copy moves to Action.To; if the key was asked for (Move), only its asker gets it
	Replicate             // main copy stays; an asker gets a replica
)

// An Action is a policy's decision.
type Action struct {
	Verb Verb          // what to do
	To   godwit.NodeID // of Relocate: the node that the key moves to
}

// A Policy decides. Policies are immutable values. One that has parameters is a
// [Parameterized] policy, too; one that treats hot keys differently is a [HotPolicy],
// one that limits how the updates of replicas travel a [SyncPolicy], one that
// asks for what is read, and not for what is announced, a [ReadPolicy], and one that
// also asks for what is used again and again a [LearningPolicy], and one that fetches what is used
// once an [AheadPolicy].
type Policy interface {
	// Name is how the command line and reports call the policy. With the parameters
	// in it ([Write]) it is what ByName reads.
	Name() string
	// OnIntent says what a node asks for when an intent becomes due.
	OnIntent(hot bool) Ask
	// Everywhere says whether every node holds a replica from the start, as if
	// it had an intent for ever.
	Everywhere(hot bool) bool
	// Decide is called at the owner when a node asks for a copy or for the key,
	// when a node's interest ends, and, under an [AheadPolicy], when an update of the
	// only copy comes that the owner's workers do not want. It must be a function of the situation, and
	// must not keep s.Others. To relocate a key to a node that the run does not have
	// ends the run with an error; to relocate it to its owner keeps it.
	Decide(s Situation) Action
}

// An AheadPolicy is a [Policy] that tells keys that are used once from those that are used again
// soon.
type AheadPolicy interface {
	Policy
	// FetchesAhead reports whether the value of a key that a worker announces for one step is
	// fetched ahead of that step, and nothing else is asked for. OnIntent is then about keys that
	// the node's workers use again before an exchange of messages would be over, those that are
	// announced for several steps at once, and those of tables with bounded staleness.
	FetchesAhead() bool
}

// FetchesAhead reports whether a policy is an [AheadPolicy] that has values fetched ahead.
func FetchesAhead(p Policy) bool {
	a, ok := p.(AheadPolicy)
	return ok && a.FetchesAhead()
}

// Replicates reports whether a policy ever makes replicas.
func Replicates(p Policy) bool {
	return p.Everywhere(true) || p.Everywhere(false) || p.OnIntent(true) == Copy || p.OnIntent(false) == Copy
}

// A Parameterized policy is registered with the default parameters, and makes others
// of the parameters that stand behind its name, as in "nonuniform(factor=50)".
type Parameterized interface {
	Policy
	// With returns the policy with these parameters. It takes every parameter that it
	// has; one that is given and not taken is an error to whoever gave it.
	With(p *Params) Policy
}

// Params are the parameters that were given: positive numbers by name. Int takes a
// whole one, Float any and Flag a 1; what is not given is 0, which stands for a default.
type Params = named.Params

// A Param is a parameter by name, for [Write].
type Param = named.Param

// Write writes a name with the parameters that are not 0: what a [Parameterized]
// policy is called.
func Write(name string, params ...Param) string { return named.Write(name, params...) }

// policies by name.
var policies = map[string]Policy{}

// Register makes a policy known by its name, to [ByName] and with it to specs of
// jobs and to command lines, and returns it. It is called where package variables
// are initialized or in init functions, by all programs of a run. It panics if the
// name is no word of letters, digits and dashes, or is taken.
func Register(p Policy) Policy {
	if p == nil {
		panic("placement: Register: no policy, nil")
	}
	name := p.Name()
	if !named.Valid(name) {
		panic(fmt.Sprintf("placement: Register: a policy is called %q, want letters, digits and dashes, a letter first; with default parameters, a policy's name has none", name))
	}
	if _, taken := policies[name]; taken {
		panic(fmt.Sprintf("placement: Register: there is a policy %q already, give this one another name", name))
	}
	policies[name] = p
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
	if x, ok := p.(Parameterized); ok {
		p = x.With(params)
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
