package placement

import "github.com/godwit-ps/godwit/internal/named"

// Stale is Petuum's cache (SSP: Ho et al., NIPS 2013; with the server's pushes,
// ESSP: Dai et al., AAAI 2015): whoever reads a key holds a replica, from the
// read on until it was not read for as many clocks as its table's reads may be
// stale. Rounds and the marks of bounded staleness keep it fresh. Intents and
// Localize do nothing.
//
// Where a table sets no bound, a replica stays for Keep clocks, by name as in
// "stale(keep=100)".
var Stale = register(stale{})

// StaleKeep is for how many clocks replicas stay by default where nothing else says.
const StaleKeep = 10

type stale struct{ keep int }

func (s stale) Name() string {
	return named.Write("stale", named.Param{Key: "keep", Value: float64(s.keep)})
}

func (stale) with(p *named.Params) Policy { return stale{p.Whole("keep")} }

func (stale) OnIntent(bool) Ask    { return Copy }
func (stale) Everywhere(bool) bool { return false }

func (s stale) onRead() int64 {
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

// OnRead reports whether a node asks for what it reads, as if the read were an
// intent, and not for what its workers announce; and for how many clocks after
// the read it wants that where the table does not bound staleness.
func OnRead(p Policy) (keep int64, ok bool) {
	if x, ok := p.(interface{ onRead() int64 }); ok {
		return x.onRead(), true
	}
	return 0, false
}
