package ahead

import (
	"math"
	"math/bits"
	"slices"

	"github.com/godwit-ps/godwit"
)

// A Buffer is what one worker has fetched ahead. The zero Buffer is empty.
type Buffer struct {
	Depth godwit.Clock // for how many steps ahead values are fetched, less one
	Own   bool         // also of keys that the steps before use, whose pushes the worker adds itself

	steps  []*Step // in use, the oldest first
	pushed []*Step // pushes of the worker to keys of these, the oldest first: those between two times that it asked for values are one
	last   uint64  // number of the last of both
	free   []*Step
	under  []under             // operations that may be under way, beside those of steps
	room   int                 // how many of them may be noted before it is seen which are over
	busy   map[godwit.Key]bool // scratch: what is under way
	found  []uint32            // scratch: positions of pushes to a key
	depth  depth
	held   counts // of the keys of steps
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
	ready int      // of keys, so many are in slots
	prior []uint32 // of pushes, by position: that of the push to the same key before and 1; 0: there is none
	seq   uint64
	whole bool  // Values are rows
	asked int64 // when, in nanoseconds
	took  int64 // how long they took to come, at the most; 0: the worker has not come to use them
	late  bool  // it waited for them
	now   bool  // they were asked for when the step had begun, with operations of the worker under way or not
	firm  bool  // … that take effect before
	of    *Buffer
}

// An item is a key of a step.
type item struct {
	off, dim uint32
	left     uint64 // how many rows had left its shard when it was asked for
	gone     bool   // there is no value, or it may not be used
}

// An under is an operation of the worker that was not waited for.
type under struct {
	handle  godwit.Handle
	keys    []godwit.Key
	ordered bool // it takes effect before what is asked for after it
}

// Any reports whether anything is fetched ahead.
func (b *Buffer) Any() bool { return len(b.steps) > 0 }

// Room reports whether values of one more step may be fetched as soon as they are announced. A program that announces each key by itself, or whose clock
// does not advance, has no end of steps.
func (b *Buffer) Room() bool { return len(b.steps) < mostSteps }

const mostSteps = 256

// Begin makes room for the values of a step. The caller adds its keys, calls Ready, asks
// for the keys in Asked, and notes the Handle.
func (b *Buffer) Begin(at godwit.Clock, whole bool) *Step {
	s := b.next(at)
	s.whole, s.of = whole, b
	b.steps = append(b.steps, s)
	return s
}

// next returns a Step without keys.
func (b *Buffer) next(at godwit.Clock) *Step {
	var s *Step
	if n := len(b.free); n > 0 {
		s, b.free = b.free[n-1], b.free[:n-1]
	} else {
		s = new(Step)
	}
	b.last++
	s.At, s.Handle, s.seq, s.whole, s.took, s.late, s.now, s.firm, s.of = at, 0, b.last, false, 0, false, false, false, nil
	s.Asked, s.Values, s.keys, s.items, s.prior, s.ready = s.Asked[:0], s.Values[:0], s.keys[:0], s.items[:0], s.prior[:0], 0
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
	if s.ready == 0 || 2*len(s.keys) > len(s.slots) {
		size := 2 << bits.Len(uint(len(s.keys)))
		s.slots = slices.Grow(s.slots[:0], size)[:size]
		clear(s.slots)
		s.shift = uint(64 - bits.TrailingZeros(uint(size)))
		s.ready, s.prior = 0, s.prior[:0]
	}
	for ; s.ready < len(s.keys); s.ready++ {
		at := &s.slots[s.at(s.keys[s.ready])]
		if s.of == nil { // of equal keys of pushes, the last counts, and leads to the others
			s.prior = append(s.prior, *at)
			*at = uint32(s.ready) + 1
		} else if *at == 0 { // of other equal keys, the first
			*at = uint32(s.ready) + 1
		}
	}
	n := 0
	if last := len(s.items) - 1; last >= 0 {
		n = int(s.items[last].off + s.items[last].dim)
	}
	s.Values = slices.Grow(s.Values, n-len(s.Values))[:n]
	if s.of != nil {
		s.of.hold(s)
	}
}

// A counts says which keys no step has, for most of these, by one look: how many keys of steps have a hash.
// What it looks at is small beside the processor's caches: each access to a key that is not here asks it.
type counts struct {
	keys  int
	of    []uint8 // by hash: a power of two, at least four times as many as keys; full: that many or more
	shift uint
}

// full is the count that does not change any more, until all are counted anew.
const full = math.MaxUint8

// leastCounts is how many hashes there are at least.
const leastCounts = 1 << 10

// hold counts the keys of a step.
func (b *Buffer) hold(s *Step) {
	c := &b.held
	if c.keys += len(s.keys); 4*c.keys <= len(c.of) {
		c.add(s)
		return
	}
	size := max(leastCounts, 2<<bits.Len(uint(4*c.keys)))
	c.of, c.shift = make([]uint8, size), uint(64-bits.TrailingZeros(uint(size)))
	for _, s := range b.steps {
		c.add(s)
	}
}

// letGo ends that.
func (b *Buffer) letGo(s *Step) {
	c := &b.held
	c.keys -= len(s.keys)
	for _, k := range s.keys {
		if n := c.at(k); *n < full {
			*n--
		}
	}
}

// add counts a step's keys.
func (c *counts) add(s *Step) {
	for _, k := range s.keys {
		if n := c.at(k); *n < full {
			*n++
		}
	}
}

// at returns the count of a key's hash.
func (c *counts) at(k godwit.Key) *uint8 { return &c.of[uint64(k)*0x9e3779b97f4a7c15>>c.shift] }

// steps returns in how many steps a key is, at the most.
func (c *counts) steps(k godwit.Key) int {
	if c.keys == 0 {
		return 0
	}
	if n := *c.at(k); n < full {
		return int(n)
	}
	return math.MaxInt
}

// hasValue reports whether the step has a value of a key.
func (s *Step) hasValue(k godwit.Key) bool {
	j := s.slots[s.at(k)]
	return j != 0 && !s.items[j-1].gone
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
	if b.held.steps(k) == 0 {
		return nil, 0
	}
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

// Has reports whether a step at a clock has a value of a key, or a row of it if whole is set.
func (b *Buffer) Has(k godwit.Key, at godwit.Clock, whole bool) bool {
	return b.held.steps(k) > 0 && slices.ContainsFunc(b.steps, func(s *Step) bool { return s.At == at && s.whole == whole && s.hasValue(k) })
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
	s.Unordered()
}

// Unordered has no value of the step used.
func (s *Step) Unordered() {
	for i := range s.items {
		s.items[i].gone = true
	}
}

// Changes reports whether a push to a key changes what the worker is to read of it: that has to be
// noted (Push). Values that the worker cannot change are forgotten.
func (b *Buffer) Changes(k godwit.Key) (is bool) {
	n := b.held.steps(k)
	for i := 0; n > 0 && i < len(b.steps); i++ {
		s := b.steps[i]
		j := s.slots[s.at(k)]
		if j == 0 {
			continue
		}
		n--
		if s.items[j-1].gone {
			continue
		}
		if s.whole {
			is = true
		} else {
			s.items[j-1].gone = true
		}
	}
	return is
}

// Push makes room for vectors that the worker pushes, behind those that it has pushed since it asked for values last. The caller adds the keys,
// calls Ready, and writes what Values has more than before.
func (b *Buffer) Push() *Step {
	if n := len(b.pushed); n > 0 && b.pushed[n-1].seq == b.last {
		return b.pushed[n-1]
	}
	s := b.next(0)
	b.pushed = append(b.pushed, s)
	return s
}

// Noted returns how many bytes the vectors take that the worker has pushed.
func (b *Buffer) Noted() (bytes int64) {
	for _, p := range b.pushed {
		bytes += 4 * int64(len(p.Values))
	}
	return bytes
}

// Pushes calls do with each vector that the worker has pushed to a key since a step's values were asked for,
// the first one first.
func (b *Buffer) Pushes(s *Step, k godwit.Key, do func(push []float32)) {
	for _, p := range b.pushed {
		if p.seq < s.seq {
			continue
		}
		b.found = b.found[:0]
		for j := p.slots[p.at(k)]; j != 0; j = p.prior[j-1] {
			b.found = append(b.found, j-1)
		}
		for _, i := range slices.Backward(b.found) {
			do(p.Value(int(i)))
		}
	}
}

// Replaced has what the same step and later ones have of the keys of a step, which was asked for after that, not used any more: the
// worker would go back in time. A step has a key twice if the worker announces it again. Then a push may have the newer value
// forgotten (Changes) when it was read, and leaves an older row.
func (b *Buffer) Replaced(s *Step) {
	for _, x := range b.steps {
		if x.At < s.At || x == s {
			continue
		}
		for _, k := range s.Asked {
			if b.held.steps(k) < 2 {
				continue
			}
			if j := x.slots[x.at(k)]; j != 0 {
				x.items[j-1].gone = true
			}
		}
	}
}

// ForgetEach has no value used any more of keys of which is reports true.
func (b *Buffer) ForgetEach(is func(godwit.Key) bool) {
	for _, s := range b.steps {
		for i, k := range s.keys {
			if is(k) {
				s.items[i].gone = true
			}
		}
	}
}

// Forget has no value of a key used any more.
func (b *Buffer) Forget(k godwit.Key) {
	if b.held.steps(k) == 0 {
		return
	}
	for _, s := range b.steps {
		if j := s.slots[s.at(k)]; j != 0 {
			s.items[j-1].gone = true
		}
	}
}

// Lacking appends the keys of the step at a clock of which there is no value that may be used.
func (b *Buffer) Lacking(at godwit.Clock, keys []godwit.Key) []godwit.Key {
	for n, s := range b.steps {
		if s.At != at {
			continue
		}
		for i := range s.items {
			k := s.keys[i]
			if s.items[i].gone && !slices.ContainsFunc(b.steps[:n], func(x *Step) bool { return x.At == at && x.has(k) }) &&
				!slices.ContainsFunc(b.steps[n+1:], func(x *Step) bool { return x.At == at && x.hasValue(k) }) {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// Overtaken has no value used any more that was asked for when its step had begun, and may be of before an operation that was
// under way then.
func (b *Buffer) Overtaken() {
	for _, s := range b.steps {
		if s.now && !s.firm {
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
		b.letGo(s)
		b.free = append(b.free, s)
	}
	b.steps = rest
	n := 0
	for n < len(b.pushed) && (len(rest) == 0 || b.pushed[n].seq < rest[0].seq) {
		n++
	}
	b.free = append(b.free, b.pushed[:n]...)
	b.pushed = slices.Delete(b.pushed, 0, n)
}

// Under notes an operation on keys that was not waited for. Complete reports whether an operation is
// over. Those that are over are forgotten now and then, so that no more are kept than about twice
// as many as were under way at a time.
func (b *Buffer) Under(h godwit.Handle, keys []godwit.Key, ordered bool, complete func(godwit.Handle) bool) {
	if len(b.under) >= b.room {
		b.settle(complete)
		b.room = 2*len(b.under) + minUnder
	}
	b.under = append(b.under, under{h, slices.Clone(keys), ordered})
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
		if u.ordered && b.Own {
			continue
		}
		for _, k := range u.keys {
			b.busy[k] = true
		}
	}
	return func(k godwit.Key) bool { return len(b.busy) > 0 && b.busy[k] }
}

// InOrder reports whether all that UnderWay found to be under way takes effect before what is asked for now.
func (b *Buffer) InOrder() bool { return b.Own && len(b.busy) == 0 }

// UsedBefore reports whether a step before a clock uses a key.
func (b *Buffer) UsedBefore(k godwit.Key, at godwit.Clock) bool {
	return b.held.steps(k) > 0 && slices.ContainsFunc(b.steps, func(s *Step) bool { return (!b.Own || s.At < at) && s.has(k) })
}
