package placement

// RelocateAll is Lapse (Renz-Wieland et al., PVLDB 2020): a key has one copy,
// which moves to whoever asked last, by Localize or by an intent that became
// due.
var RelocateAll = Register(relocate{})

type relocate struct{}

func (relocate) Name() string         { return "relocate" }
func (relocate) OnIntent(bool) Ask    { return Move }
func (relocate) Everywhere(bool) bool { return false }

func (relocate) Decide(s Situation) Action {
	if s.Asked == Move {
		return Action{Verb: Relocate, To: s.Asker}
	}
	return Action{Verb: Keep}
}
