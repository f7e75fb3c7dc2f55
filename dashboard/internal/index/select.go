package index

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A Selection says which of the traced keys are meant, and in which order.
type Selection struct {
	Table string // only of this table; empty: all
	Query string // only those whose name has this in it, in any case, or whose number, row or table:row it is; empty: all
	Sort  Order  // the order; empty: ByHeat
}

// An Order is that of keys.
type Order string

// The orders. Those of counts begin with the largest.
const (
	ByHeat      Order = "heat"
	ByMoves     Order = "moves"
	ByCopies    Order = "copies"
	ByRefreshes Order = "refreshes"
	ByKey       Order = "key"
	ByOwner     Order = "owner" // at the end, and then by heat
)

// Orders are all orders.
var Orders = []Order{ByHeat, ByMoves, ByCopies, ByRefreshes, ByKey, ByOwner}

// An order is that of a selection. It is kept for a while: people look at it, and rows should not change places all the time.
type order struct {
	keys []int32
	at   time.Time
	n    uint64 // events that there were
}

const (
	keepOrder  = 5 * time.Second
	mostOrders = 4
)

// selected returns the numbers of the keys of a selection. It is called under the lock.
func (ix *Index) selected(s Selection) []int32 {
	if s.Sort == "" {
		s.Sort = ByHeat
	}
	ix.ordering.Lock()
	defer ix.ordering.Unlock()
	now := time.Now()
	if o, ok := ix.orders[s]; ok && (o.n == ix.events || now.Sub(o.at) < keepOrder) {
		return o.keys
	}
	keys := ix.find(s)
	slices.SortFunc(keys, ix.compare(s.Sort))
	if len(ix.orders) >= mostOrders {
		clear(ix.orders)
	}
	ix.orders[s] = order{keys, now, ix.events}
	return keys
}

// find returns the numbers of the keys that are meant, in any order.
func (ix *Index) find(s Selection) []int32 {
	first, end := godwit.Key(0), godwit.Key(1<<48)
	if s.Table != "" {
		end = 0
		for _, t := range ix.header.Tables {
			if t.Name == s.Table {
				first, end = t.First, t.First+godwit.Key(t.Rows)
			}
		}
	}
	query := strings.ToLower(strings.TrimSpace(s.Query))
	exact, err := trace.ParseKey(strings.TrimSpace(s.Query), ix.header.Tables)
	keys := make([]int32, 0, len(ix.keys.keys))
	for i, k := range ix.keys.keys {
		if k >= first && k < end && (query == "" || err == nil && k == exact || strings.Contains(strings.ToLower(ix.names[k]), query)) {
			keys = append(keys, int32(i))
		}
	}
	return keys
}

// compare returns the comparison of an order.
func (ix *Index) compare(o Order) func(a, b int32) int {
	count := func(of func(*Totals) uint64) func(a, b int32) int {
		return func(a, b int32) int {
			return cmp.Or(cmp.Compare(of(&ix.totals[b]), of(&ix.totals[a])), cmp.Compare(ix.keys.keys[a], ix.keys.keys[b]))
		}
	}
	heat := count(func(t *Totals) uint64 { return t.Accesses })
	switch o {
	case ByMoves:
		return count(func(t *Totals) uint64 { return uint64(t.Moves) })
	case ByCopies:
		return count(func(t *Totals) uint64 { return uint64(t.Copies) })
	case ByRefreshes:
		return count(func(t *Totals) uint64 { return uint64(t.Refreshes) })
	case ByKey:
		return func(a, b int32) int { return cmp.Compare(ix.keys.keys[a], ix.keys.keys[b]) }
	case ByOwner:
		c := ix.grid.now()
		return func(a, b int32) int {
			return cmp.Or(cmp.Compare(c.ownerOf(int(a)), c.ownerOf(int(b))), heat(a, b))
		}
	}
	return heat
}

// now returns a column with what nodes have now.
func (g *grid) now() *column {
	c := &column{}
	for _, w := range g.walkers {
		c.widen(max(len(w.has), g.keys), g.bitmap)
		g.fill(w, c)
	}
	return c
}
