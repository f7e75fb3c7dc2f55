package placement

import (
	"cmp"
	"slices"

	"github.com/godwit-ps/godwit"
)

// HotFactor is NuPS's rule for the hot set: keys accessed more than this many
// times as often as the mean key.
const HotFactor = 100

// A HotRule says which keys are hot. The zero HotRule is NuPS's own.
type HotRule struct {
	// Factor calls those hot that are accessed more than Factor times as often
	// as the mean key; 0 means HotFactor.
	Factor float64
	// Most, where set, calls the Most keys hot that are accessed most, and
	// Factor does not count.
	Most int
}

// A HotPolicy is a [Policy] that treats hot keys differently.
type HotPolicy interface {
	Policy
	// HotRule says which keys are hot.
	HotRule() HotRule
}

// HotRuleOf returns the rule of a policy that treats hot keys differently.
func HotRuleOf(p Policy) (r HotRule, ok bool) {
	if x, ok := p.(HotPolicy); ok {
		return x.HotRule(), true
	}
	return HotRule{}, false
}

// A Frequency is how often a key is accessed, in any unit.
type Frequency struct {
	Key   godwit.Key // of the model
	Count float64    // how often, not negative
}

// Least returns the frequency that a hot key exceeds where the mean key has
// mean: below it, a key need not be considered.
func (r HotRule) Least(mean float64) float64 {
	switch {
	case r.Most > 0:
		return 0
	case r.Factor > 0:
		return r.Factor * mean
	}
	return HotFactor * mean
}

// Pick returns the hot keys, in order, of those whose frequencies are given. It
// reorders fs.
func (r HotRule) Pick(fs []Frequency, mean float64) []godwit.Key {
	least := r.Least(mean)
	fs = r.most(slices.DeleteFunc(fs, func(f Frequency) bool { return !(f.Count > least) }))
	keys := make([]godwit.Key, len(fs))
	for i, f := range fs {
		keys[i] = f.Key
	}
	slices.Sort(keys)
	return keys
}

// Add adds the frequency of a key to those of others. It leaves out of them, now and
// then, what Pick would leave out whatever is added: so no more than twice as many
// as may be hot are kept, and some, where the rule says how many may be.
func (r HotRule) Add(fs []Frequency, f Frequency) []Frequency {
	if r.Most > 0 && len(fs) >= 2*r.Most+slack {
		fs = r.most(fs)
	}
	return append(fs, f)
}

const slack = 4096

// most returns the frequencies that are among the Most highest, if there is a Most.
func (r HotRule) most(fs []Frequency) []Frequency {
	if r.Most <= 0 || r.Most >= len(fs) {
		return fs
	}
	slices.SortFunc(fs, func(a, b Frequency) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
	return fs[:r.Most]
}

// A Sync says how the updates of replicas travel. The zero Sync sends each whole,
// as soon as the shell makes a round: that is often where little changes, and
// takes a bounded share of the processor where much does.
//
// A limit holds once a worker of the node has advanced its clock: what the task
// does before that, to set the model up, travels as by the zero Sync. WaitSync
// brings everything to the owners whatever the limits.
type Sync struct {
	// Rate is the most rounds a second in which a node exchanges what changed;
	// 0 sets no limit.
	Rate float64
	// Threshold keeps an update at the replica while its norm (L2, of the value)
	// is less.
	Threshold float64
	// Clip shortens an update whose norm is more than Clip times the mean norm
	// of what the replica sent before to just that; 0 never does.
	Clip float64
}

// A SyncPolicy is a [Policy] that limits how the updates of replicas travel.
type SyncPolicy interface {
	Policy
	// Sync says how they travel.
	Sync() Sync
}

// SyncOf returns how a policy wants replicas synchronized.
func SyncOf(p Policy) Sync {
	if x, ok := p.(SyncPolicy); ok {
		return x.Sync()
	}
	return Sync{}
}
