package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
)

// This file has the processor fetch what a round, or a flush, will use of replicas that changed. They are anywhere in memory, and each is several trips
// away, of which every one depends on the one before: the index, the row, its side, and the row as of the last exchange. So each step is announced for a key
// some keys before it is made, and the trips of several keys overlap. (For main copies that changed, whose rows are only read, that gains nothing.)

// For how many keys ahead each step is announced.
const (
	indexAhead = 16
	rowAhead   = 12
	sideAhead  = 8
	subAhead   = 4
)

// A lookahead is what is known of the keys of a list that come next.
type lookahead struct {
	rows [indexAhead]*store.Header // of the keys up to rowAhead, at their positions modulo indexAhead
}

// begin announces what the first keys of a list need.
func (a *lookahead) begin(s *Shard, keys []godwit.Key) {
	for i := -indexAhead; i < 0; i++ {
		a.step(s, keys, i)
	}
}

// step announces one step of each key that is as far behind the key at i.
func (a *lookahead) step(s *Shard, keys []godwit.Key, i int) {
	if n := i + indexAhead; n < len(keys) {
		s.st.Finder().PrefetchIndex(keys[n])
	}
	if n := i + rowAhead; n >= 0 && n < len(keys) {
		h := s.st.Finder().Look(keys[n])
		a.rows[n%indexAhead] = h
		store.PrefetchToWrite(h, s.cfg.Model.RowLen(keys[n]))
	}
	if n := i + sideAhead; n >= 0 && n < len(keys) {
		if h := a.rows[n%indexAhead]; h != nil {
			s.PrefetchSide(h, keys[n])
		}
	}
	if n := i + subAhead; n >= 0 && n < len(keys) {
		if h := a.rows[n%indexAhead]; h != nil && h.Key == keys[n] && stateOf(h).isReplica() {
			store.PrefetchToWrite(s.st.Header(s.side(h).replica().sub), s.cfg.Model.RowLen(h.Key))
		}
	}
}
