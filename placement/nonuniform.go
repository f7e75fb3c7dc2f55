package placement

// NonUniform is NuPS (Renz-Wieland et al., SIGMOD 2022, section 3): hot spots
// are replicated everywhere, all other keys relocate. Its parameters, by name
// as in "nonuniform(factor=50,rate=25)", say which keys are hot ([HotRule]:
// factor, hot) and how their replicas are kept in sync ([Sync]: rate,
// threshold, clip).
var NonUniform = Register(nonuniform{})

type nonuniform struct {
	hot  HotRule
	sync Sync
}

func (n nonuniform) Name() string {
	return Write("nonuniform",
		Param{Key: "factor", Value: n.hot.Factor}, Param{Key: "hot", Value: float64(n.hot.Most)},
		Param{Key: "rate", Value: n.sync.Rate}, Param{Key: "threshold", Value: n.sync.Threshold}, Param{Key: "clip", Value: n.sync.Clip})
}

// With implements [Parameterized].
func (nonuniform) With(p *Params) Policy {
	return nonuniform{
		HotRule{Factor: p.Float("factor"), Most: p.Int("hot")},
		Sync{Rate: p.Float("rate"), Threshold: p.Float("threshold"), Clip: p.Float("clip")},
	}
}

// HotRule implements [HotPolicy].
func (n nonuniform) HotRule() HotRule { return n.hot }

// Sync implements [SyncPolicy].
func (n nonuniform) Sync() Sync { return n.sync }

func (nonuniform) Everywhere(hot bool) bool { return hot }

func (nonuniform) OnIntent(hot bool) Ask {
	if hot {
		return Nothing
	}
	return Move
}

// Decide gives whoever asks for a copy one: nodes ask only for copies of hot
// keys, and may know that a key is hot before its owner does.
func (nonuniform) Decide(s Situation) Action {
	switch {
	case s.Hot, s.Asked == Copy:
		return Action{Verb: Replicate}
	case s.Asked == Move:
		return Action{Verb: Relocate, To: s.Asker}
	}
	return Action{Verb: Keep}
}
