package link

import (
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
)

// asking counts, in bytes, the rows that this node asked others for because of
// intents, and did not get. A node may be asked for as much as could still be
// asked for of others: so one that does not answer takes half of the room, and
// keeps nobody from asking the rest. The first row of each may always be asked for.
type asking struct {
	most   int64
	all    atomic.Int64
	of     []atomic.Int64 // by node
	denied atomic.Bool    // somebody was, and has to hear of it when there is room,
	due    atomic.Bool    // … which is so now
}

func newAsking(most, nodes int) *asking {
	return &asking{most: int64(most), of: make([]atomic.Int64, nodes)}
}

// ask counts one more row, and reports whether there was room for it.
func (a *asking) ask(of godwit.NodeID, cost int64) bool {
	if a.count(of, cost) {
		return true
	}
	a.denied.Store(true)
	preempt.Point()
	return a.count(of, cost) // what has come before that told nobody
}

func (a *asking) count(of godwit.NodeID, cost int64) bool {
	its, all := a.of[of].Add(cost), a.all.Add(cost)
	preempt.Point()
	if its > cost && its+all > a.most {
		a.all.Add(-cost)
		return a.of[of].Add(-cost) == 0 && a.count(of, cost) // what it owed has come meanwhile, and told nobody
	}
	return true
}

// got takes note that a row has come. It reports whether there is room now for
// somebody who was denied some: for several rows, or of a node that owes nothing.
func (a *asking) got(of godwit.NodeID, cost int64) bool {
	its, all := a.of[of].Add(-cost), a.all.Add(-cost)
	preempt.Point()
	return (its == 0 || its+all <= a.most/2) && a.denied.Load() && a.denied.Swap(false)
}
