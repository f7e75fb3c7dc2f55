// Package directory knows where keys are: every key's home, the owners of the
// keys that live away from their home, and hints of where other keys were seen
// last.
package directory

import "github.com/godwit-ps/godwit"

// maxSlots bounds the number of slots, and with it the size of the table of
// homes (two bytes a slot on every node).
const maxSlots = 1 << 16

// Homes assigns each key its home. Runs of consecutive keys form slots, and
// each slot goes to the node that wins a rendezvous of hashes (highest random
// weight): every node computes the same table from the member list alone, and
// a change of the membership moves only the slots of the nodes concerned. It
// is immutable.
type Homes struct {
	shift uint // keys of a slot, log2
	slot  []godwit.NodeID
}

// NewHomes lays out the homes of keys 0 … keys-1 over the members.
func NewHomes(keys uint64, members []godwit.NodeID) *Homes {
	h := &Homes{}
	for (keys-1)>>h.shift >= maxSlots {
		h.shift++
	}
	h.slot = make([]godwit.NodeID, (keys-1)>>h.shift+1)
	for i := range h.slot {
		var best uint64
		h.slot[i] = members[0]
		for j, m := range members {
			if w := weight(uint64(i), m); j == 0 || w > best {
				best, h.slot[i] = w, m
			}
		}
	}
	return h
}

// Home returns the home of a valid key.
func (h *Homes) Home(k godwit.Key) godwit.NodeID { return h.slot[k>>h.shift] }

// Keys returns how many keys have their home at a node, in whole slots.
func (h *Homes) Keys(n godwit.NodeID) uint64 {
	var slots uint64
	for _, home := range h.slot {
		if home == n {
			slots++
		}
	}
	return slots << h.shift
}

// weight is the rendezvous weight of a node for a slot: a 64-bit mix of both.
func weight(slot uint64, n godwit.NodeID) uint64 {
	x := slot*0x9e3779b97f4a7c15 + uint64(n)*0xd1342543de82ef95 + 0x2545f4914f6cdd1d
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return x ^ x>>32
}
