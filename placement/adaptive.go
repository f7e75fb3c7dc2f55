package placement

// Adaptive is AdaPS/AdaPM (Renz-Wieland et al., CIKM 2023, section 4.1): the
// intents decide. A key that one node wants moves there, a key that several
// want is replicated to them, a key that nobody wants stays. Beyond AdaPM, nodes learn
// intents that nobody announces ([LearningPolicy]).
var Adaptive = Register(adaptive{name: "adaptive", move: true, replicate: true, learn: true})

// The two ablations of Adaptive: with one technique only, and by announced intents only.
var (
	AdaptiveMoveOnly      = Register(adaptive{name: "adaptive-move-only", move: true})
	AdaptiveReplicateOnly = Register(adaptive{name: "adaptive-replicate-only", replicate: true})
)

type adaptive struct {
	name            string
	move, replicate bool
	learn           bool
}

func (a adaptive) Name() string         { return a.name }
func (a adaptive) Everywhere(bool) bool { return false }
func (a adaptive) Learns() bool         { return a.learn }

func (a adaptive) OnIntent(bool) Ask {
	if !a.replicate {
		return Move
	}
	return Copy
}

func (a adaptive) Decide(s Situation) Action {
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
