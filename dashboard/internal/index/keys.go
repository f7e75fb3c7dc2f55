package index

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A Key is what is known of a key.
type Key struct {
	Key      godwit.Key
	Name     string // empty: none
	Totals   Totals
	Owner    int // None: nobody
	Replicas []int
}

// Keys returns keys of a selection as they are at a time, and how many the selection has.
func (ix *Index) Keys(ctx context.Context, s Selection, time int64, offset, limit int) (keys []Key, total int, err error) {
	tr, err := ix.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	g, err := ix.instant(tr, time)
	if err != nil {
		return nil, 0, err
	}
	c, all := g.now(), ix.selected(s)
	for _, k := range cut(all, offset, limit) {
		x := Key{Key: ix.keys.keys[k], Totals: ix.totals[k], Owner: c.ownerOf(int(k)), Replicas: nodesOf(c.replicasOf(int(k), g.bitmap))}
		x.Name = ix.names[x.Key]
		keys = append(keys, x)
	}
	return keys, len(all), nil
}

// nodesOf returns the nodes of a bitmap.
func nodesOf(bitmap []uint8) (nodes []int) {
	for i, b := range bitmap {
		for ; b != 0; b &= b - 1 {
			nodes = append(nodes, 8*i+bits.TrailingZeros8(b))
		}
	}
	return nodes
}

// Moved returns how often keys that moved were accessed, and how often they moved.
func (ix *Index) Moved() (accesses, moves uint64) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	for i := range ix.totals {
		if t := &ix.totals[i]; t.Moves > 0 {
			accesses, moves = accesses+t.Accesses, moves+uint64(t.Moves)
		}
	}
	return accesses, moves
}

// Name returns the name of a key; empty: it has none.
func (ix *Index) Name(k godwit.Key) string { return ix.names[k] }

// Life reads the life of a key, with times since the run's start.
func (ix *Index) Life(ctx context.Context, k godwit.Key) (*trace.Life, error) {
	tr, err := ix.open(ctx)
	if err != nil {
		return nil, err
	}
	l, err := tr.Life(k)
	if err != nil {
		return nil, err
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	for i := range l.Events {
		l.Events[i].Time += ix.late(int(l.Events[i].Node))
	}
	for i := range l.Reigns {
		r := &l.Reigns[i]
		r.From += ix.late(int(r.Owner))
		if r.To >= 0 {
			r.To += ix.late(int(r.Owner))
		}
	}
	for i := range l.Thinned {
		g := &l.Thinned[i]
		g.From += ix.late(int(g.Node))
		if g.To >= 0 {
			g.To += ix.late(int(g.Node))
		}
	}
	return l, nil
}

// A Share is what a node had to do with some keys.
type Share struct {
	Owned, Replicated float64 // of the time, summed over keys
	Counts            [Counted]uint64
}

// A Technique is what was done about a key.
type Technique struct {
	Key        godwit.Key
	Name       string
	Totals     Totals
	Replicated float64 // share of the time for which some node had a replica
}

// An Affinity is what nodes had to do with some keys.
type Affinity struct {
	Keys       int
	Nodes      []Share
	Techniques []Technique // of the first ones
}

// mostTechniques is how many keys an Affinity tells of.
const mostTechniques = 2000

// Affinity returns what nodes had to do with a selection of keys, or with these keys.
func (ix *Index) Affinity(ctx context.Context, s Selection, these []godwit.Key) (*Affinity, error) {
	tr, err := ix.open(ctx)
	if err != nil {
		return nil, err
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	keys := ix.selected(s)
	if len(these) > 0 {
		keys = ix.numbers(these)
	}
	a := &Affinity{Keys: len(keys), Nodes: make([]Share, ix.header.Nodes)}
	somewhere, err := ix.places(ctx, a, keys)
	if err != nil {
		return nil, err
	}
	if err := ix.countsOf(tr, a, keys); err != nil {
		return nil, err
	}
	for i, k := range cut(keys, 0, mostTechniques) {
		key := ix.keys.keys[k]
		a.Techniques = append(a.Techniques, Technique{key, ix.names[key], ix.totals[k], somewhere[i]})
	}
	return a, nil
}

func (ix *Index) numbers(keys []godwit.Key) (numbers []int32) {
	for _, k := range keys {
		if n := ix.keys.number(k); n >= 0 {
			numbers = append(numbers, int32(n))
		}
	}
	return numbers
}

// places finds out which share of the time the nodes had the keys, and returns for the first of them that for which somebody
// had a replica. Where the last window has no end yet, it counts like the others.
func (ix *Index) places(ctx context.Context, a *Affinity, keys []int32) (somewhere []float64, err error) {
	g := ix.grid
	first := keys[:min(len(keys), mostTechniques)]
	inOrder := slices.Sorted(slices.Values(keys)) // as columns have them: the next key is in the cache
	var mu sync.Mutex                             // of the sums
	owned, replicated, had := make([]int, len(a.Nodes)), make([]int, len(a.Nodes)), make([]int, len(first))
	parallel(len(g.columns), func(i int) {
		if ctx.Err() != nil {
			return
		}
		c := g.complete(i)
		t := tallyOf(c, g.bitmap, inOrder)
		mu.Lock()
		defer mu.Unlock()
		for n := range a.Nodes {
			owned[n] += int(t.owned[n+1])
			replicated[n] += t.replicated(n)
		}
		for j, k := range first {
			if ones(c.replicasOf(int(k), g.bitmap)) > 0 {
				had[j]++
			}
		}
	})
	unit := 1 / float64(max(1, len(g.columns)))
	for n := range a.Nodes {
		a.Nodes[n].Owned = float64(owned[n]) * unit / float64(max(1, len(keys)))
		a.Nodes[n].Replicated = float64(replicated[n]) * unit / float64(max(1, len(keys)))
	}
	for _, n := range had {
		somewhere = append(somewhere, float64(n)*unit)
	}
	return somewhere, context.Cause(ctx)
}

// A tally is how many of some keys nodes have.
type tally struct {
	owned [256]uint32   // by node + 1; 0: nobody
	maps  [][256]uint32 // by byte of the bitmap of a key's replicas, and its value: one count for up to eight nodes
}

// tallyOf counts keys in a column.
func tallyOf(c *column, bitmap int, keys []int32) *tally {
	t := &tally{maps: make([][256]uint32, bitmap)}
	for _, k := range keys {
		if int(k) >= len(c.owner) {
			continue
		}
		t.owned[c.owner[k]]++
		for i, b := range c.replicas[int(k)*bitmap : (int(k)+1)*bitmap] {
			if b != 0 {
				t.maps[i][b]++
			}
		}
	}
	return t
}

// replicated returns of how many keys a node has a replica.
func (t *tally) replicated(node int) (n int) {
	for b, many := range &t.maps[node/8] {
		if b&(1<<(node&7)) != 0 {
			n += int(many)
		}
	}
	return n
}

// countsOf counts the events of keys by node: from the segments, if these are not all.
func (ix *Index) countsOf(tr *trace.Trace, a *Affinity, keys []int32) error {
	if len(keys) == len(ix.keys.keys) {
		for _, c := range ix.grid.columns {
			for n := range a.Nodes {
				for i := range a.Nodes[n].Counts {
					a.Nodes[n].Counts[i] += c.counts[n*int(Counted)+i]
				}
			}
		}
		return nil
	}
	wanted := make([]bool, len(ix.keys.keys))
	for _, k := range keys {
		wanted[k] = true
	}
	errs := make([]error, len(a.Nodes))
	parallel(len(errs), func(n int) {
		errs[n] = tr.Events(godwit.NodeID(n), func(e trace.Event) bool {
			if k := ix.keys.number(e.Key); k >= 0 && wanted[k] {
				if c, many, ok := count(&e); ok {
					a.Nodes[n].Counts[c] += many
				}
			}
			return true
		})
	})
	return errors.Join(errs...)
}

// A Series has what happened in equal windows of time, by node. The last window ends with the range, or with what is known of the run: it has at least
// half the width of the others, and less than three halves, if there are others.
type Series struct {
	From, Width int64 // ns: when the first window begins, how long each but the last is
	To          int64 // ns: when the last one ends
	Cols        int
	Nodes       [][Counted][]float64 // by node, what, and window: how many. What was written down in sum is spread over the time of which it is
}

// Window returns when a window begins and ends, in ns.
func (s *Series) Window(i int) (from, to int64) {
	from = s.From + int64(i)*s.Width
	if i == s.Cols-1 {
		return from, s.To
	}
	return from, from + s.Width
}

// Series returns what happened within a range of time, in so many windows at the most.
func (ix *Index) Series(from, to int64, cols int) *Series {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	g := ix.grid
	first, end := g.columnsOf(from, to)
	per := max(1, (end-first+cols-1)/max(1, cols))
	s := &Series{From: g.origin + int64(first)*g.width, Width: int64(per) * g.width, Cols: (end - first + per - 1) / per, Nodes: make([][Counted][]float64, g.nodes)}
	s.To = min(g.end(end-1), ix.last)
	if last, _ := s.Window(s.Cols - 1); s.Cols > 1 && s.To-last < s.Width/2 { // too short for a rate
		s.Cols--
	}
	if last, _ := s.Window(s.Cols - 1); s.To <= last { // all that is known happened at once
		s.To = last + s.Width
	}
	for node := range s.Nodes {
		of := &s.Nodes[node]
		for c := range Counted {
			counts := g.series(node, c, ix.last)
			of[c] = make([]float64, s.Cols)
			for i := first; i < end; i++ {
				of[c][min((i-first)/per, s.Cols-1)] += counts[i]
			}
		}
		for i, x := range of[Tallied] {
			of[Refreshes][i] += x
		}
	}
	return s
}
