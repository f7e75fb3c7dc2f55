package directory

import (
	"math/bits"

	"github.com/godwit-ps/godwit"
)

// owners are the entries of a directory: a hash table with linear probing, at most three quarters
// full, that grows with what it has. An access to a key that is homed here and not here asks it, so it
// has entries of 16 bytes and no map's way to them.
type owners struct {
	places []entry
	n      int
}

// An entry is empty if its place is 0.
type entry struct {
	place uint64 // key/stride << nodeBits | node+1
	epoch godwit.Epoch
}

// begin returns where the search for a key begins.
func (o *owners) begin(x uint64) int {
	i, _ := bits.Mul64(x*0x9e3779b97f4a7c15, uint64(len(o.places)))
	return int(i)
}

func (o *owners) after(i int) int { return (i + 1) & (len(o.places) - 1) }

// find returns where the entry of a key is, or where it goes. There is a free place.
func (o *owners) find(x uint64) (at int, ok bool) {
	for at = o.begin(x); o.places[at].place != 0; at = o.after(at) {
		if o.places[at].place>>nodeBits == x {
			return at, true
		}
	}
	return at, false
}

func (o *owners) get(x uint64) (Owner, bool) {
	if o.n == 0 {
		return Owner{}, false
	}
	at, ok := o.find(x)
	if !ok {
		return Owner{}, false
	}
	e := &o.places[at]
	return Owner{Node: godwit.NodeID(e.place) - 1, Epoch: e.epoch}, true
}

func (o *owners) set(x uint64, to Owner) {
	if 4*(o.n+1) > 3*len(o.places) {
		o.grow()
	}
	at, ok := o.find(x)
	if !ok {
		o.n++
	}
	o.places[at] = entry{x<<nodeBits | uint64(to.Node+1), to.Epoch}
}

func (o *owners) grow() {
	old := o.places
	o.places = make([]entry, max(2*len(old), minPlaces))
	for _, e := range old {
		if e.place != 0 {
			at, _ := o.find(e.place >> nodeBits)
			o.places[at] = e
		}
	}
}

// drop takes the entry of a key out, if there is one, and moves what stands behind it and would not
// be found any more.
func (o *owners) drop(x uint64) {
	if o.n == 0 {
		return
	}
	gap, ok := o.find(x)
	if !ok {
		return
	}
	mask := len(o.places) - 1
	for i := o.after(gap); o.places[i].place != 0; i = o.after(i) {
		own := o.begin(o.places[i].place >> nodeBits)
		if (i-own)&mask >= (i-gap)&mask {
			o.places[gap] = o.places[i]
			gap = i
		}
	}
	o.places[gap] = entry{}
	o.n--
}
