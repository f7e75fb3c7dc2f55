package placement

// NonUniform is NuPS (Renz-Wieland et al., SIGMOD 2022, section 3): hot spots
// are replicated everywhere from the start, all other keys relocate.
var NonUniform = register(nonuniform{})

// HotFactor is NuPS's rule for the hot set: keys accessed more than this many
// times as often as the mean key.
const HotFactor = 100

type nonuniform struct{}

func (nonuniform) Name() string             { return "nonuniform" }
func (nonuniform) Everywhere(hot bool) bool { return hot }

func (nonuniform) OnIntent(hot bool) Ask {
	if hot {
		return Nothing
	}
	return Move
}

func (nonuniform) Decide(s Situation) Action {
	switch {
	case s.Hot:
		return Action{Verb: Replicate}
	case s.Asked == Move:
		return Action{Verb: Relocate, To: s.Asker}
	}
	return Action{Verb: Keep}
}
