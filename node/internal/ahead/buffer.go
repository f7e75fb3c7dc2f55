package ahead

import (
	"math/bits"
	"slices"

	"github.com/godwit-ps/godwit"
)

// A Buffer is what one worker has fetched ahead. The zero Buffer is empty.
type Buffer struct {
	Depth godwit.Clock // for how many steps ahead values are fetched, less one

	steps []*Step // in use, the oldest first
	free  []*Step
	under []under             // operations that may be under way, beside those of steps
	room  int                 // how many of them may be noted before it is seen which are over
	busy  map[godwit.Key]bool // scratch: what is under way
	depth depth
}

// A Step is what a worker announced for one of its steps and is elsewhere: the values that were
// fetched, and which keys were not.
type Step struct {
	At     godwit.Clock  // the worker's clock at which they are used
	Handle godwit.Handle // of the operation that fetches them; 0: they are here
	Asked  []godwit.Key  // the keys whose values are fetched
	Values []float32     // of these, one after the other

	keys  []godwit.Key
	items []item   // of keys
	slots []uint32 // position of a key and 1, by hash; 0: none. A power of two, at most half full
	shift uint
	used  bool // the worker has come to use them
	now   bool // they were asked for when the step had begun, with operations of the worker under way or not
}

// An item is a key of a step.
type item struct {
	off, dim uint32
	left     uint64 // how many rows had left its shard when it was asked for
	gone     bool   // there is no value, or it may not be used
}

// An under is an operation of the worker that was not waited for.
type under struct {
	handle godwit.Handle
	keys   []godwit.Key
}

// Any reports whether anything is fetched ahead.
func (b *Buffer) Any() bool { return len(b.steps) > 0 }

// Begin makes room for the values of a step. The caller adds its keys, calls Ready, asks
// for the keys in Asked, and notes the Handle.
func (b *Buffer) Begin(at godwit.Clock) *Step {
	var s *Step
	if n := len(b.free); n > 0 {
		s, b.free = b.free[n-1], b.free[:n-1]
	} else {
		s = new(Step)
	}
	s.At, s.Handle, s.used, s.now = at, 0, false, false
	s.Asked, s.Values, s.keys, s.items = s.Asked[:0], s.Values[:0], s.keys[:0], s.items[:0]
	b.steps = append(b.steps, s)
	return s
}

// Add adds a key whose value has so many floats; so many rows have left its shard by now.
// Its value is fetched, or not.
func (s *Step) Add(k godwit.Key, dim int, left uint64, fetch bool) {
	off := 0
	if n := len(s.items); n > 0 {
		off = int(s.items[n-1].off + s.items[n-1].dim)
	}
	s.keys = append(s.keys, k)
	if !fetch {
		dim = 0
	} else {
		s.Asked = append(s.Asked, k)
	}
	s.items = append(s.items, item{off: uint32(off), dim: uint32(dim), left: left, gone: !fetch})
}

// Ready ends the adding. Values has the length of all values then.
func (s *Step) Ready() {
	size := 4 << bits.Len(uint(len(s.keys)))
	s.slots = slices.Grow(s.slots[:0], size)[:size]
	clear(s.slots)
	s.shift = uint(64 - bits.TrailingZeros(uint(size)))
	for i, k := range s.keys {
		at := s.at(k)
		if s.slots[at] == 0 { // of equal keys, the first counts
			s.slots[at] = uint32(i) + 1
		}
	}
	n := 0
	if last := len(s.items) - 1; last >= 0 {
		n = int(s.items[last].off + s.items[last].dim)
	}
	s.Values = slices.Grow(s.Values[:0], n)[:n]
}

// has reports whether the step has a key.
func (s *Step) has(k godwit.Key) bool { return s.slots[s.at(k)] != 0 }

// at returns the slot of a key, or the free one where it would be.
func (s *Step) at(k godwit.Key) int {
	mask := len(s.slots) - 1
	at := int(uint64(k) * 0x9e3779b97f4a7c15 >> s.shift)
	for s.slots[at] != 0 && s.keys[s.slots[at]-1] != k {
		at = (at + 1) & mask
	}
	return at
}

// Find returns the step that has a value of a key, and the position there: the newest, of
// steps up to a clock. It returns nil if none has.
func (b *Buffer) Find(k godwit.Key, clock godwit.Clock) (*Step, int) {
	for i := len(b.steps) - 1; i >= 0; i-- {
		s := b.steps[i]
		if s.At > clock {
			continue
		}
		if j := s.slots[s.at(k)]; j != 0 && !s.items[j-1].gone {
			return s, int(j - 1)
		}
	}
	return nil, 0
}

// Value returns the value at a position of a step.
func (s *Step) Value(i int) []float32 {
	x := &s.items[i]
	return s.Values[x.off : x.off+x.dim]
}

// Left returns how many rows had left the shard of the key at a position when its value was asked for.
func (s *Step) Left(i int) uint64 { return s.items[i].left }

// Fail notes that no value of the step has come or will come.
func (s *Step) Fail() {
	s.Handle = 0
	for i := range s.items {
		s.items[i].gone = true
	}
}

// Forget has no value of a key used any more.
func (b *Buffer) Forget(k godwit.Key) {
	for _, s := range b.steps {
		if j := s.slots[s.at(k)]; j != 0 {
			s.items[j-1].gone = true
		}
	}
}

// Lacking appends the keys of the step at a clock of which there is no value that may be used.
func (b *Buffer) Lacking(at godwit.Clock, keys []godwit.Key) []godwit.Key {
	for _, s := range b.steps {
		if s.At != at {
			continue
		}
		for i := range s.items {
			if s.items[i].gone {
				keys = append(keys, s.keys[i])
			}
		}
	}
	return keys
}

// Overtaken has no value used any more that was asked for when its step had begun.
func (b *Buffer) Overtaken() {
	for _, s := range b.steps {
		if s.now {
			for i := range s.items {
				s.items[i].gone = true
			}
		}
	}
}

// Over calls do with each step before a clock. The step is not in use any more: it must
// not be written to when do returns.
func (b *Buffer) Over(clock godwit.Clock, do func(*Step)) {
	rest := b.steps[:0]
	for _, s := range b.steps {
		if s.At >= clock {
			rest = append(rest, s)
			continue
		}
		do(s)
		b.free = append(b.free, s)
	}
	b.steps = rest
}

// Under notes an operation on keys that was not waited for. Complete reports whether an operation is
// over. Those that are over are forgotten now and then, so that no more are kept than about twice
// as many as were under way at a time.
func (b *Buffer) Under(h godwit.Handle, keys []godwit.Key, complete func(godwit.Handle) bool) {
	if len(b.under) >= b.room {
		b.settle(complete)
		b.room = 2*len(b.under) + minUnder
	}
	b.under = append(b.under, under{h, slices.Clone(keys)})
}

// minUnder is how many operations are noted in any case before it is seen which are over.
const minUnder = 64

// settle forgets operations that are over.
func (b *Buffer) settle(complete func(godwit.Handle) bool) {
	b.under = slices.DeleteFunc(b.under, func(u under) bool { return complete(u.handle) })
}

// UnderWay returns what says of a key whether the worker uses it in a step before, or has an
// operation on it under way. The value of such a key must not be fetched: it could be of before that
// use, and would be used after it. Complete reports whether an operation is over.
func (b *Buffer) UnderWay(complete func(godwit.Handle) bool) func(godwit.Key) bool {
	b.settle(complete)
	if b.busy == nil {
		b.busy = map[godwit.Key]bool{}
	}
	clear(b.busy)
	for _, u := range b.under {
		for _, k := range u.keys {
			b.busy[k] = true
		}
	}
	steps := b.steps // without one that begins now
	return func(k godwit.Key) bool {
		return len(b.busy) > 0 && b.busy[k] || slices.ContainsFunc(steps, func(s *Step) bool { return s.has(k) })
	}
}
