package placement

// Stale is Petuum's cache (SSP: Ho et al., NIPS 2013; with the server's pushes,
// ESSP: Dai et al., AAAI 2015): whoever reads a key holds a replica, from the
// read on until it was not read for as many clocks as its table's reads may be
// stale. Rounds and the marks of bounded staleness keep it fresh. Intents and
// Localize do nothing.
//
// Where a table sets no bound, a replica stays for Keep clocks, by name as in
// "stale(keep=100)".
var Stale = Register(stale{})

// StaleKeep is for how many clocks replicas stay by default where nothing else says.
const StaleKeep = 10

type stale struct{ keep int }

func (s stale) Name() string {
	return Write("stale", Param{Key: "keep", Value: float64(s.keep)})
}

// With implements [Parameterized].
func (stale) With(p *Params) Policy { return stale{p.Int("keep")} }

func (stale) OnIntent(bool) Ask    { return Copy }
func (stale) Everywhere(bool) bool { return false }

// OnRead implements [ReadPolicy].
func (s stale) OnRead() int64 {
	if s.keep == 0 {
		return StaleKeep
	}
	return int64(s.keep)
}

func (stale) Decide(s Situation) Action {
	if s.Asked == Copy {
		return Action{Verb: Replicate}
	}
	return Action{Verb: Keep}
}

// A ReadPolicy is a [Policy] by which a node asks for what it reads, as if the read
// were an intent, and not for what its workers announce.
type ReadPolicy interface {
	Policy
	// OnRead returns for how many clocks after a read the node wants what was read,
	// where the table does not bound staleness.
	OnRead() int64
}

// OnRead reports whether a node asks for what it reads, as if the read were an
// intent, and not for what its workers announce; and for how many clocks after
// the read it wants that where the table does not bound staleness.
func OnRead(p Policy) (keep int64, ok bool) {
	if x, ok := p.(ReadPolicy); ok {
		return x.OnRead(), true
	}
	return 0, false
}
