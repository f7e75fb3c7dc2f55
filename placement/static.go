package placement

// Static is the classic parameter server (Li et al., OSDI'14): every key stays
// at its home, intents and Localize do nothing.
var Static = Register(static{})

type static struct{}

func (static) Name() string            { return "static" }
func (static) OnIntent(bool) Ask       { return Nothing }
func (static) Everywhere(bool) bool    { return false }
func (static) Decide(Situation) Action { return Action{Verb: Keep} }
