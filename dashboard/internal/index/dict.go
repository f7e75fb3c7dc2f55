package index

import "github.com/godwit-ps/godwit"

// A dict numbers keys in the order in which they were added.
type dict struct {
	keys   []godwit.Key
	direct []int32 // by key: its number + 1; 0: none. Of keys beyond, slots
	slots  []int32 // number of a key + 1; 0: free
	hashed int     // keys in slots
	shift  uint
}

// mostDirect is how many keys of a model a dict has a number for at once.
const mostDirect = 1 << 22

// newDict returns a dict for a model of so many keys.
func newDict(keys uint64) dict { return dict{direct: make([]int32, min(keys, mostDirect))} }

// number returns the number of a key, and -1 if it has none.
func (d *dict) number(k godwit.Key) int {
	if k < godwit.Key(len(d.direct)) {
		return int(d.direct[k]) - 1
	}
	return d.find(k)
}

// find is number of a key in slots.
func (d *dict) find(k godwit.Key) int {
	if len(d.slots) == 0 {
		return -1
	}
	for i := d.slot(k); ; i = (i + 1) & (len(d.slots) - 1) {
		switch n := int(d.slots[i]) - 1; {
		case n < 0 || d.keys[n] == k:
			return n
		}
	}
}

// add returns the number of a key, which it gives one if it has none.
func (d *dict) add(k godwit.Key) int {
	if n := d.number(k); n >= 0 {
		return n
	}
	d.keys = append(d.keys, k)
	n := len(d.keys) - 1
	if k < godwit.Key(len(d.direct)) {
		d.direct[k] = int32(n + 1)
		return n
	}
	if d.hashed++; 2*d.hashed > len(d.slots) {
		d.grow()
	} else {
		d.place(n)
	}
	return n
}

func (d *dict) slot(k godwit.Key) int { return int(uint64(k) * 0x9e3779b97f4a7c15 >> d.shift) }

func (d *dict) grow() {
	size, shift := 1024, uint(54)
	for size < 4*d.hashed {
		size, shift = 2*size, shift-1
	}
	d.slots, d.shift = make([]int32, size), shift
	for n, k := range d.keys {
		if k >= godwit.Key(len(d.direct)) {
			d.place(n)
		}
	}
}

func (d *dict) place(n int) {
	i := d.slot(d.keys[n])
	for d.slots[i] != 0 {
		i = (i + 1) & (len(d.slots) - 1)
	}
	d.slots[i] = int32(n + 1)
}
