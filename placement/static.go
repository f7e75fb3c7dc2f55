package placement

// Static is the classic parameter server (Li et al., OSDI'14): every key stays
// at its home, intents and Localize do nothing. With ahead=1, by name as in
// "static(ahead=1)", the values of announced keys are fetched ahead of their use.
var Static = Register(static{})

type static struct{ ahead bool }

func (s static) Name() string {
	if s.ahead {
		return Write("static", Param{Key: "ahead", Value: 1})
	}
	return Write("static")
}

// With implements [Parameterized].
func (static) With(p *Params) Policy { return static{p.Flag("ahead")} }

func (static) OnIntent(bool) Ask       { return Nothing }
func (static) Everywhere(bool) bool    { return false }
func (static) Decide(Situation) Action { return Action{Verb: Keep} }

// FetchesAhead implements [AheadPolicy].
func (s static) FetchesAhead() bool { return s.ahead }
