// Package intent keeps what workers announced and says when to act on it.
//
// A [Plan] holds one worker's intents: first those to come, ordered by start,
// then those being acted on, ordered by end. A [Timer] says how far ahead of a
// worker's clock its intents are acted on (the window).
package intent

import (
	"container/heap"
	"slices"

	"github.com/godwit-ps/godwit"
)

// span is one announced intent.
type span struct {
	keys       []godwit.Key
	start, end godwit.Clock
}

// A Plan is one worker's intents. It has no lock: one goroutine uses it at a
// time.
type Plan struct {
	coming spans // by start
	active spans // by end
	keys   int
	joined keySet // scratch
}

// Add takes an intent; the plan owns keys from now on. An intent that ends
// before it starts, or that holds no key, is nothing.
func (p *Plan) Add(keys []godwit.Key, start, end godwit.Clock) {
	if end <= start || len(keys) == 0 {
		return
	}
	p.keys += len(keys)
	p.coming.less = byStart
	heap.Push(&p.coming, span{keys, start, end})
}

// Keys returns how many keys the plan holds, counted once an intent.
func (p *Plan) Keys() int { return p.keys }

// Due begins every intent that starts at or before clock+window: it calls
// begin with the keys and the start. An intent that ended before it began is dropped, and so
// is one of which begin returns false: its keys are begin's. The keys of the others stay
// the plan's until Expire passes them to end.
func (p *Plan) Due(clock, window godwit.Clock, begin func(keys []godwit.Key, start godwit.Clock) (active bool)) {
	for horizon := after(clock, window); p.due(horizon); {
		s := heap.Pop(&p.coming).(span)
		if s.end <= clock || !begin(s.keys, s.start) {
			p.keys -= len(s.keys)
			continue
		}
		p.begun(s)
	}
}

// DueTogether is Due of intents that are acted on together, as steps that follow each other mostly use
// the same keys: when one is due, so are those that start less than so many clocks later. Intents
// whose starts and whose ends are less than so many clocks apart become one, which has each of their
// keys once and ends with the last of them. If together is 1, each is acted on by itself. Each is active until
// Expire passes its keys to end.
func (p *Plan) DueTogether(clock, window, together godwit.Clock, begin func(keys []godwit.Key)) {
	horizon := after(clock, window)
	if !p.due(horizon) {
		return
	}
	for horizon = after(horizon, together-1); p.due(horizon); {
		s := heap.Pop(&p.coming).(span)
		if s.end <= clock {
			p.keys -= len(s.keys)
			continue
		}
		p.join(&s, min(horizon, after(s.start, together-1)), together)
		begin(s.keys)
		p.begun(s)
	}
}

// join makes an intent that was taken out one with those that come and start by a clock, and
// end near its end.
func (p *Plan) join(s *span, last, together godwit.Clock) {
	end, before := s.end, 0
	for p.due(last) {
		x := &p.coming.s[0]
		if x.end <= end-together || x.end >= after(end, together) {
			break
		}
		if before == 0 {
			p.joined.reset()
			p.joined.add(s.keys)
			before = len(s.keys)
		}
		p.joined.add(x.keys)
		before += len(x.keys)
		s.end = max(s.end, x.end)
		heap.Pop(&p.coming)
	}
	if before > 0 {
		s.keys = slices.Clone(p.joined.keys)
		p.keys += len(s.keys) - before
	}
}

// due reports whether an intent starts by a clock.
func (p *Plan) due(clock godwit.Clock) bool {
	return len(p.coming.s) > 0 && p.coming.s[0].start <= clock
}

// begun files an intent that is acted on.
func (p *Plan) begun(s span) {
	p.active.less = byEnd
	heap.Push(&p.active, s)
}

// after returns the clock so many clocks after another, or the last there is.
func after(clock, clocks godwit.Clock) godwit.Clock {
	if sum := clock + clocks; sum >= clock {
		return sum
	}
	return godwit.Forever
}

// Expire ends every active intent whose end the clock has reached: it calls
// end with the keys, which are the caller's afterwards. For intents that are to stay active after their
// ends (see [Timer.Stay]), the clock is that much earlier.
func (p *Plan) Expire(clock godwit.Clock, end func([]godwit.Key)) {
	for len(p.active.s) > 0 && p.active.s[0].end <= clock {
		s := heap.Pop(&p.active).(span)
		p.keys -= len(s.keys)
		end(s.keys)
	}
}

// Sift passes the keys of every active intent whose end the clock has reached to stay. The intent goes on for those that stay returns,
// in the same memory.
func (p *Plan) Sift(clock godwit.Clock, stay func([]godwit.Key) []godwit.Key) {
	left := p.active.s[:0]
	for _, s := range p.active.s {
		if s.end <= clock {
			n := len(s.keys)
			s.keys = stay(s.keys)
			if p.keys -= n - len(s.keys); len(s.keys) == 0 {
				continue
			}
		}
		left = append(left, s)
	}
	clear(p.active.s[len(left):])
	p.active.s = left
	heap.Init(&p.active)
}

// Next returns the clock at which there is something to do again: the first
// end of an active intent, and the clocks that it stays active afterwards, or the first start of a coming one less the window.
// It is godwit.Forever if there is nothing.
func (p *Plan) Next(window, stay godwit.Clock) godwit.Clock {
	next := godwit.Forever
	if len(p.active.s) > 0 {
		next = after(p.active.s[0].end, stay)
	}
	if len(p.coming.s) > 0 {
		next = min(next, p.coming.s[0].start-window)
	}
	return next
}

// spans is a heap of intents.
type spans struct {
	s    []span
	less func(a, b *span) bool
}

func byStart(a, b *span) bool { return a.start < b.start }
func byEnd(a, b *span) bool   { return a.end < b.end }

func (h *spans) Len() int           { return len(h.s) }
func (h *spans) Less(i, j int) bool { return h.less(&h.s[i], &h.s[j]) }
func (h *spans) Swap(i, j int)      { h.s[i], h.s[j] = h.s[j], h.s[i] }
func (h *spans) Push(x any)         { h.s = append(h.s, x.(span)) }

func (h *spans) Pop() any {
	last := h.s[len(h.s)-1]
	h.s[len(h.s)-1] = span{}
	h.s = h.s[:len(h.s)-1]
	return last
}
