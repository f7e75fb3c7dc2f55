package intent

import (
	"math/bits"

	"github.com/godwit-ps/godwit"
)

// A Recent tells keys that a worker announces again and again from those that it announces
// once in a long while. It remembers at which clock a key was announced last, in a table of
// a fixed size in which keys overwrite each other: a key that is forgotten counts as one that was not
// announced. Its zero value remembers nothing.
type Recent struct {
	last []seen
}

// seen is a key and a clock, by their lowest bits.
type seen struct{ key, clock uint32 }

// recentKeys is how many keys are remembered: 256 KiB.
const recentKeys = 1 << 15

// Part parts keys that a worker announces for a clock into those that it announced less than so many
// clocks before, and the others. The first are in the memory of keys.
func (r *Recent) Part(keys []godwit.Key, at, within godwit.Clock) (again, once []godwit.Key) {
	if r.last == nil {
		r.last = make([]seen, recentKeys)
		for i := range r.last {
			r.last[i].clock = uint32(at - within - 1)
		}
	}
	again = keys[:0]
	for _, k := range keys {
		h, _ := bits.Mul64(uint64(k)*0x9e3779b97f4a7c15, recentKeys)
		x := &r.last[h]
		if x.key == uint32(k) && godwit.Clock(uint32(at)-x.clock) <= within {
			again = append(again, k)
		} else {
			once = append(once, k)
		}
		*x = seen{uint32(k), uint32(at)}
	}
	return again, once
}
