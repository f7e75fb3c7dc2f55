// Package intent keeps what workers announced and says when to act on it.
//
// A [Plan] holds one worker's intents: first those to come, ordered by start,
// then the keys of those that began, ordered by end. A [Timer] says how far ahead of a
// worker's clock its intents are acted on (the window).
package intent

import (
	"container/heap"
	"slices"

	"github.com/godwit-ps/godwit"
)

// A Plan is one worker's intents. It has no lock: one goroutine uses it at a
// time.
//
// A key is held from when the first intent for it begins until the last of those that began meanwhile has ended: programs use some keys in
// most of their steps, and intents for these overlap. Intents that begin together are a group. Each key that is held is in the list of
// one group, and when that ends, goes to the list of the one that holds it longest.
type Plan struct {
	coming spans // by start
	said   int   // keys of the coming ones, counted once an intent
	active groups
	held   holds

	// scratch
	batch [][]godwit.Key
	fresh []godwit.Key
	again []godwit.Key
}

// Add takes an intent; the plan owns keys from now on. An intent that ends
// before it starts, or that holds no key, is nothing.
func (p *Plan) Add(keys []godwit.Key, start, end godwit.Clock) {
	if end <= start || len(keys) == 0 {
		return
	}
	p.said += len(keys)
	heap.Push(&p.coming, span{keys, start, end})
}

// Keys returns how many keys the plan has: those of intents to come, counted once an intent, and those that are held.
func (p *Plan) Keys() int { return p.said + p.held.n }

// Groups returns how many groups of intents have begun and not ended. Each takes memory, also one whose keys are all in the lists of others.
func (p *Plan) Groups() int { return len(p.active) }

// Slots returns how many places there are for keys that are held, most of which are free. A place takes the memory of two keys.
func (p *Plan) Slots() int { return len(p.held.slots) }

// Due takes every intent out that starts at or before clock+window: it calls take with the keys, which are take's, and the start. An
// intent that has ended already is dropped.
func (p *Plan) Due(clock, window godwit.Clock, take func(keys []godwit.Key, start godwit.Clock)) {
	for horizon := after(clock, window); p.due(horizon); {
		if s := p.next(); s.end > clock {
			take(s.keys, s.start)
		}
	}
}

// Begin begins every intent that starts at or before clock+window. Steps that follow each other mostly use
// the same keys: when one is due, so are those that start less than so many clocks later. Intents
// whose starts and whose ends are less than so many clocks apart become one, which ends with the last of
// them. If together is 1, each begins by itself. An intent that has ended already is dropped, unless it becomes one with another that has not.
//
// For each of them, Begin calls begin with those of its keys that were not held, and again with the others, each if there are any. The keys stay the plan's.
// It returns how many keys it looked up.
func (p *Plan) Begin(clock, window, together godwit.Clock, begin, again func([]godwit.Key)) (looked int) {
	horizon := after(clock, window)
	if !p.due(horizon) {
		return 0
	}
	said := p.said
	for horizon = after(horizon, together-1); p.due(horizon); {
		s := p.next()
		if s.end <= clock {
			continue
		}
		g := p.hold(p.join(s, min(horizon, after(s.start, together-1)), together))
		if len(g.keys) > 0 {
			begin(g.keys)
		}
		if len(p.again) > 0 {
			again(p.again)
		}
	}
	return said - p.said
}

// join makes a batch of an intent that was taken out and those that come and start by a clock, and
// end near its end. It returns the last end.
func (p *Plan) join(s span, last, together godwit.Clock) (end godwit.Clock) {
	p.batch = append(p.batch[:0], s.keys)
	for end = s.end; p.due(last); {
		x := &p.coming[0]
		if x.end <= s.end-together || x.end >= after(s.end, together) {
			break
		}
		end = max(end, x.end)
		p.batch = append(p.batch, p.next().keys)
	}
	return end
}

// hold begins a group of the batch, which ends at a clock: it has the keys that were not held before. Those that were are put into again.
// Where all of them are held as long by others, the plan does not keep the group.
func (p *Plan) hold(end godwit.Clock) *group {
	whole := p.batch[0]
	g := &group{keys: whole[:0], end: end} // in that memory
	if len(p.batch) > 1 {
		g.keys = p.fresh[:0]
	}
	p.again = p.again[:0]
	kept := false
	for _, keys := range p.batch {
		for _, k := range keys {
			switch x := p.held.of(k); {
			case x.by == nil:
				p.held.put(x, k, g)
				g.keys, kept = append(g.keys, k), true
			case x.by == g: // twice in the batch
			default:
				p.again = append(p.again, k)
				if x.by.end < end {
					x.by, kept = g, true
				}
			}
		}
	}
	switch {
	case len(p.batch) > 1:
		p.fresh, g.keys = g.keys, slices.Clone(g.keys)
	case 2*len(g.keys) < len(whole): // most are in the lists of others: what the intent came with is not kept for few
		g.keys = slices.Clone(g.keys)
	}
	clear(p.batch)
	if kept {
		heap.Push(&p.active, g)
	}
	return g
}

// due reports whether an intent starts by a clock.
func (p *Plan) due(clock godwit.Clock) bool {
	return len(p.coming) > 0 && p.coming[0].start <= clock
}

// next takes the intent out that starts first.
func (p *Plan) next() span {
	s := heap.Pop(&p.coming).(span)
	p.said -= len(s.keys)
	return s
}

// after returns the clock so many clocks after another, or the last there is.
func after(clock, clocks godwit.Clock) godwit.Clock {
	if sum := clock + clocks; sum >= clock {
		return sum
	}
	return godwit.Forever
}

// Expire ends every group whose end the clock has reached: it calls end with the keys that no other group holds, which are
// end's. For keys that are to stay held after the end of their group (see [Timer.Stay]), the clock is that much earlier.
func (p *Plan) Expire(clock godwit.Clock, end func([]godwit.Key)) {
	for len(p.active) > 0 && p.active[0].end <= clock {
		g := heap.Pop(&p.active).(*group)
		over := g.keys[:0]
		for _, k := range g.keys {
			if by := p.held.by(k); by != g {
				by.keys = append(by.keys, k)
				continue
			}
			p.held.end(k)
			over = append(over, k)
		}
		if len(over) > 0 {
			end(over)
		}
	}
}

// Sift passes the keys of every group whose end the clock has reached to stay, but for those that another group holds for longer than
// that. It ends those that stay does not return. Stay returns the others in their order, in the same memory.
func (p *Plan) Sift(clock godwit.Clock, stay func([]godwit.Key) []godwit.Key) {
	for _, g := range p.active {
		if g.end > clock {
			continue
		}
		p.again = p.again[:0] // those of a group that goes on
		over := g.keys[:0]
		for _, k := range g.keys {
			if p.held.by(k).end > clock {
				p.again = append(p.again, k)
			} else {
				over = append(over, k)
			}
		}
		p.fresh = append(p.fresh[:0], over...)
		if len(over) > 0 {
			over = stay(over)
		}
		n := 0
		for _, k := range p.fresh {
			if n < len(over) && over[n] == k {
				n++
			} else {
				p.held.end(k)
			}
		}
		g.keys = append(over, p.again...)
	}
}

// Next returns the clock at which there is something to do again: the first
// end of a group, and the clocks that its keys stay held afterwards, or the first start of a coming intent less the window.
// It is godwit.Forever if there is nothing.
func (p *Plan) Next(window, stay godwit.Clock) godwit.Clock {
	next := godwit.Forever
	if len(p.active) > 0 {
		next = after(p.active[0].end, stay)
	}
	if len(p.coming) > 0 {
		next = min(next, p.coming[0].start-window)
	}
	return next
}

// span is one announced intent.
type span struct {
	keys       []godwit.Key
	start, end godwit.Clock
}

// spans is a heap of intents, by start.
type spans []span

func (h spans) Len() int           { return len(h) }
func (h spans) Less(i, j int) bool { return h[i].start < h[j].start }
func (h spans) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *spans) Push(x any)        { *h = append(*h, x.(span)) }

func (h *spans) Pop() any {
	s := *h
	last := s[len(s)-1]
	s[len(s)-1] = span{}
	*h = s[:len(s)-1]
	return last
}

// groups is a heap of groups, by end.
type groups []*group

func (h groups) Len() int           { return len(h) }
func (h groups) Less(i, j int) bool { return h[i].end < h[j].end }
func (h groups) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *groups) Push(x any)        { *h = append(*h, x.(*group)) }

func (h *groups) Pop() any {
	s := *h
	last := s[len(s)-1]
	s[len(s)-1] = nil
	*h = s[:len(s)-1]
	return last
}
