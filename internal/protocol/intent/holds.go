package intent

import (
	"math/bits"

	"github.com/godwit-ps/godwit"
)

// A group is intents that began together.
type group struct {
	keys []godwit.Key
	end  godwit.Clock
}

// holds says of each key that is held which group holds it longest: a hash table with linear
// probing, at most half full. Its zero value is empty.
type holds struct {
	slots []hold // a power of two
	n     int    // of them have a key
}

type hold struct {
	key godwit.Key
	by  *group // nil: no key
}

const firstSlots = 1 << 6

// at returns the slot of a key, or the free one where it would be. There must be slots.
func (h *holds) at(k godwit.Key) int {
	mask := len(h.slots) - 1
	at := h.first(k)
	for h.slots[at].by != nil && h.slots[at].key != k {
		at = (at + 1) & mask
	}
	return at
}

// first returns the slot where the search for a key begins.
func (h *holds) first(k godwit.Key) int {
	at, _ := bits.Mul64(uint64(k)*0x9e3779b97f4a7c15, uint64(len(h.slots)))
	return int(at)
}

// of returns the slot of a key, which has none of it yet if by is nil. It is good until the next call of of.
func (h *holds) of(k godwit.Key) *hold {
	if 2*h.n >= len(h.slots) {
		h.grow()
	}
	return &h.slots[h.at(k)]
}

// put fills a free slot that of has returned.
func (h *holds) put(x *hold, k godwit.Key, by *group) {
	*x = hold{k, by}
	h.n++
}

// by returns which group holds a key longest. The key must be held.
func (h *holds) by(k godwit.Key) *group { return h.slots[h.at(k)].by }

// end takes a key out. Those that follow go to the slots where they are found.
func (h *holds) end(k godwit.Key) {
	mask := len(h.slots) - 1
	free := h.at(k)
	for at := (free + 1) & mask; h.slots[at].by != nil; at = (at + 1) & mask {
		if first := h.first(h.slots[at].key); (at-first)&mask >= (at-free)&mask {
			h.slots[free] = h.slots[at]
			free = at
		}
	}
	h.slots[free] = hold{}
	if h.n--; h.n == 0 && len(h.slots) > maxIdleSlots {
		h.slots = nil
	}
}

// maxIdleSlots is for how many keys memory is kept while none is held.
const maxIdleSlots = 1 << 16

// grow doubles the slots.
func (h *holds) grow() {
	old := h.slots
	h.slots = make([]hold, max(2*len(old), firstSlots))
	for _, x := range old {
		if x.by != nil {
			h.slots[h.at(x.key)] = x
		}
	}
}
