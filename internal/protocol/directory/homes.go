// Package directory knows where keys are: every key's home, the owners of the
// keys that live away from their home, and hints of where other keys were seen
// last.
package directory

import (
	"math/bits"
	"slices"

	"github.com/godwit-ps/godwit"
)

const (
	// maxSlots bounds the number of slots, and with it the size of the table of
	// homes (at most two bytes a slot on every node, two bits with up to four members).
	maxSlots = 1 << 16
	// maxSlot is log2 of the most keys that stand together in a slot.
	maxSlot = 14
)

// Homes assigns each key its home. Runs of consecutive keys form slots, and
// each slot goes to the node that wins a rendezvous of hashes (highest random
// weight): every node computes the same table from the member list alone, and
// a change of the membership moves only the slots of the nodes concerned. It
// is immutable.
//
// A slot has up to 1<<maxSlot keys in a row. Where there are more keys than that
// makes room for, a slot is many such runs, far apart, so that the keys in use are
// spread over the members whatever small part of a large space they fill.
type Homes struct {
	shift uint   // keys of a run, log2
	mul   uint64 // a run's slot is its number times mul, cut to 64 bits, without the low bits
	low   uint
	runs  uint64

	// A slot is the position of its home in members, in 1<<width bits, of which mask has as
	// many; 1<<perWord slots are in a word. Each access to a key that is not here asks for its
	// home, so the table is to be small beside the processor's caches.
	slots   []uint64
	width   uint
	perWord uint
	mask    uint64
	members []godwit.NodeID
}

// NewHomes lays out the homes of keys 0 … keys-1 over the members.
func NewHomes(keys uint64, members []godwit.NodeID) *Homes {
	h := &Homes{mul: 1, members: slices.Clone(members)}
	for (keys-1)>>h.shift >= maxSlots && h.shift < maxSlot {
		h.shift++
	}
	h.runs = (keys-1)>>h.shift + 1
	if h.runs > maxSlots { // runs are dealt to slots like the steps of a golden ratio
		h.mul, h.low = 0x9e3779b97f4a7c15, uint(64-bits.Len64(maxSlots-1))
	}
	for len(members) > 1<<(1<<h.width) {
		h.width++
	}
	h.perWord, h.mask = 6-h.width, 1<<(1<<h.width)-1
	n := h.len()
	h.slots = make([]uint64, (n-1)>>h.perWord+1)
	for i := range n {
		var best, home uint64
		for j, m := range members {
			if w := weight(i, m); j == 0 || w > best {
				best, home = w, uint64(j)
			}
		}
		h.slots[i>>h.perWord] |= home << (i << h.width & 63)
	}
	return h
}

// len returns how many slots there are.
func (h *Homes) len() uint64 { return min(h.runs, maxSlots) }

// Home returns the home of a valid key.
func (h *Homes) Home(k godwit.Key) godwit.NodeID {
	return h.at(uint64(k) >> (h.shift & 63) * h.mul >> (h.low & 63))
}

// AllAt reports whether some valid keys all have their home at a node.
func (h *Homes) AllAt(n godwit.NodeID, keys []godwit.Key) bool {
	for _, k := range keys {
		if h.Home(k) != n {
			return false
		}
	}
	return true
}

// at returns the home of a slot.
func (h *Homes) at(i uint64) godwit.NodeID {
	return h.members[h.slots[i>>(h.perWord&63)]>>(i<<(h.width&63)&63)&h.mask]
}

// Member reports whether a node is one of those that keys have their homes at.
func (h *Homes) Member(n godwit.NodeID) bool { return slices.Contains(h.members, n) }

// Keys returns about how many keys have their home at a node, in whole slots.
func (h *Homes) Keys(n godwit.NodeID) uint64 {
	var slots uint64
	all := h.len()
	for i := range all {
		if h.at(i) == n {
			slots++
		}
	}
	return slots * ((h.runs + all - 1) / all) << h.shift
}

// Bytes returns the memory that the table of homes takes.
func (h *Homes) Bytes() int { return 8 * len(h.slots) }

// weight is the rendezvous weight of a node for a slot: a 64-bit mix of both.
func weight(slot uint64, n godwit.NodeID) uint64 {
	x := slot*0x9e3779b97f4a7c15 + uint64(n)*0xd1342543de82ef95 + 0x2545f4914f6cdd1d
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return x ^ x>>32
}
