package placement

// AdaPM is the rule of AdaPS/AdaPM (Renz-Wieland et al., CIKM 2023, section 4.1): the
// intents decide. A key that one node wants moves there, a key that several
// want is replicated to them, a key that nobody wants stays.
var AdaPM = Register(adapm{name: "adapm", move: true, replicate: true})

// The two ablations of AdaPM: with one technique only.
var (
	AdaptiveMoveOnly      = Register(adapm{name: "adaptive-move-only", move: true})
	AdaptiveReplicateOnly = Register(adapm{name: "adaptive-replicate-only", replicate: true})
)

type adapm struct {
	name            string
	move, replicate bool
}

func (a adapm) Name() string         { return a.name }
func (a adapm) Everywhere(bool) bool { return false }

func (a adapm) OnIntent(bool) Ask {
	if !a.replicate {
		return Move
	}
	return Copy
}

func (a adapm) Decide(s Situation) Action {
	alone := !s.SelfWants && len(s.Others) == 1
	switch {
	case s.Asked == Move && a.move && (!a.replicate || !s.SelfWants && len(s.Others) == 0):
		return Action{Verb: Relocate, To: s.Asker}
	case alone && a.move:
		return Action{Verb: Relocate, To: s.Others[0]}
	case s.Asked == Copy && a.replicate:
		return Action{Verb: Replicate}
	}
	return Action{Verb: Keep}
}

// Adaptive takes the cheapest technique for each use of a key. A key that a node uses once, and not
// again before an exchange of messages would be over, is fetched ahead of the use: a copy that is
// used once between two changes by others cannot take less. Other keys are treated as [AdaPM] treats
// all, they move to the only node that wants them or are replicated, but a key moves for the first time when that
// node has changed it. Beyond that, nodes learn intents that nobody announces ([LearningPolicy]).
var Adaptive = Register(adaptive{adapm{name: "adaptive", move: true, replicate: true}})

type adaptive struct{ adapm }

// Decide gives who asks for a key that has never moved a copy, and not the key itself: where all nodes ask
// for the same keys, the one that is first by a moment would own them all. The key moves with the
// first update of the copy, if nobody else wants it then.
func (a adaptive) Decide(s Situation) Action {
	if s.Unmoved && s.Asked == Copy {
		return Action{Verb: Replicate}
	}
	return a.adapm.Decide(s)
}

// Learns implements [LearningPolicy].
func (adaptive) Learns() bool { return true }

// FetchesAhead implements [AheadPolicy].
func (adaptive) FetchesAhead() bool { return true }
