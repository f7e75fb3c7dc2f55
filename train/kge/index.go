package kge

import "math/bits"

// An index numbers distinct rows in the order of their first occurrence. It is
// a hash table with linear probing that is used again for every batch.
type index struct {
	slots []int32 // number + 1; 0 is free
	rows  []uint32
	shift int
}

// newIndex returns an index for up to n rows.
func newIndex(n int) *index {
	log := bits.Len(uint(2 * n)) // at most half full
	return &index{slots: make([]int32, 1<<log), rows: make([]uint32, 0, n), shift: 64 - log}
}

func (x *index) reset() {
	clear(x.slots)
	x.rows = x.rows[:0]
}

// slot returns the place of row, or the free place where it would be.
func (x *index) slot(row uint32) int {
	i := int(uint64(row) * 0x9e3779b97f4a7c15 >> x.shift)
	for x.slots[i] != 0 && x.rows[x.slots[i]-1] != row {
		i = (i + 1) & (len(x.slots) - 1)
	}
	return i
}

// add returns the number of row, which is a new one if the row is.
func (x *index) add(row uint32) int32 {
	i := x.slot(row)
	if x.slots[i] == 0 {
		x.rows = append(x.rows, row)
		x.slots[i] = int32(len(x.rows))
	}
	return x.slots[i] - 1
}

// find returns the number of row, or -1.
func (x *index) find(row uint32) int32 { return x.slots[x.slot(row)] - 1 }
