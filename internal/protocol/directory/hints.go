package directory

import (
	"math/bits"

	"github.com/godwit-ps/godwit"
)

// hints are beliefs where keys of a shard are, of those that seem to be elsewhere
// than at home: a hash table with linear probing, 8 bytes an entry. It is at most
// three quarters full, and grows with what it has up to a bound. There, what is new
// takes the place of something else: a hint that is lost costs its key's requests a
// way over the home.
type hints struct {
	places []uint64 // key/stride << nodeBits | node+1, which is not 0; 0: nothing
	n      int
}

const (
	nodeBits  = 16
	minPlaces = 8
	maxPlaces = 1 << 17 // 1 MiB
)

// place returns where the search for a key begins.
func (h *hints) place(x uint64) int {
	i, _ := bits.Mul64(x*0x9e3779b97f4a7c15, uint64(len(h.places)))
	return int(i)
}

func (h *hints) after(i int) int { return (i + 1) & (len(h.places) - 1) }

// find returns where the hint of a key is, or where it goes.
func (h *hints) find(x uint64) (at int, ok bool) {
	for at = h.place(x); h.places[at] != 0; at = h.after(at) {
		if h.places[at]>>nodeBits == x {
			return at, true
		}
	}
	return at, false
}

func (h *hints) get(x uint64) (godwit.NodeID, bool) {
	if h.n == 0 {
		return 0, false
	}
	at, ok := h.find(x)
	return godwit.NodeID(h.places[at]) - 1, ok
}

func (h *hints) set(x uint64, n godwit.NodeID) {
	if 4*(h.n+1) > 3*len(h.places) {
		h.makeRoom(x)
	}
	at, ok := h.find(x)
	if !ok {
		h.n++
	}
	h.places[at] = x<<nodeBits | uint64(n+1)
}

// makeRoom makes room for the hint of a key.
func (h *hints) makeRoom(x uint64) {
	if len(h.places) >= maxPlaces {
		at, ok := h.find(x)
		for !ok && h.places[at] == 0 {
			at = h.after(at)
		}
		h.free(at)
		return
	}
	old := h.places
	h.places = make([]uint64, max(2*len(old), minPlaces))
	for _, e := range old {
		if e != 0 {
			at, _ := h.find(e >> nodeBits)
			h.places[at] = e
		}
	}
}

// drop forgets the hint of a key, if there is one.
func (h *hints) drop(x uint64) {
	if h.n == 0 {
		return
	}
	if at, ok := h.find(x); ok {
		h.free(at)
	}
}

// free empties a place, and moves what stands behind it and would not be found any
// more.
func (h *hints) free(gap int) {
	mask := len(h.places) - 1
	for i := h.after(gap); h.places[i] != 0; i = h.after(i) {
		own := h.place(h.places[i] >> nodeBits)
		if (i-own)&mask >= (i-gap)&mask {
			h.places[gap] = h.places[i]
			gap = i
		}
	}
	h.places[gap] = 0
	h.n--
}
