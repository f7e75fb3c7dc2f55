package intent

import (
	"math/bits"

	"github.com/godwit-ps/godwit"
)

// A keySet is different keys in the order in which they were first added: a hash table with linear
// probing, at most half full. Its zero value is empty.
type keySet struct {
	keys  []godwit.Key
	slots []uint32 // position in keys, plus 1; 0: none. A power of two
}

const firstSlots = 1 << 8

// reset empties the set.
func (s *keySet) reset() {
	s.keys = s.keys[:0]
	clear(s.slots)
}

// add adds keys.
func (s *keySet) add(keys []godwit.Key) {
	for _, k := range keys {
		if 2*len(s.keys) >= len(s.slots) {
			s.grow()
		}
		if at := s.at(k); s.slots[at] == 0 {
			s.keys = append(s.keys, k)
			s.slots[at] = uint32(len(s.keys))
		}
	}
}

// at returns the slot of a key, or the free one where it would be.
func (s *keySet) at(k godwit.Key) int {
	mask := len(s.slots) - 1
	h, _ := bits.Mul64(uint64(k)*0x9e3779b97f4a7c15, uint64(len(s.slots)))
	at := int(h)
	for s.slots[at] != 0 && s.keys[s.slots[at]-1] != k {
		at = (at + 1) & mask
	}
	return at
}

// grow doubles the slots.
func (s *keySet) grow() {
	s.slots = make([]uint32, max(2*len(s.slots), firstSlots))
	for i, k := range s.keys {
		s.slots[s.at(k)] = uint32(i) + 1
	}
}
