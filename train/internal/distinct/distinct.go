// Package distinct numbers the distinct rows of a batch, in the order of their
// first occurrence.
package distinct

import "math/bits"

// Rows is a set of rows with numbers 0, 1, … It is a hash table with linear
// probing that is reused for every batch, and grows when it is half full. The zero
// Rows is ready for use. It belongs to one goroutine.
type Rows struct {
	slots []int32 // number + 1; 0 is free
	rows  []uint32
	shift int
}

// Reset removes all rows.
func (x *Rows) Reset() {
	clear(x.slots)
	x.rows = x.rows[:0]
}

// All returns the rows by their numbers. The slice is valid until the next
// Reset or Add.
func (x *Rows) All() []uint32 { return x.rows }

// Len returns the number of rows.
func (x *Rows) Len() int { return len(x.rows) }

// Add returns the number of a row. A new row gets the next number.
func (x *Rows) Add(row uint32) int32 {
	if 2*len(x.rows) >= len(x.slots) { // at most half full
		x.grow()
	}
	i := x.slot(row)
	if x.slots[i] == 0 {
		x.rows = append(x.rows, row)
		x.slots[i] = int32(len(x.rows))
	}
	return x.slots[i] - 1
}

// Find returns the number of a row, or -1.
func (x *Rows) Find(row uint32) int32 {
	if len(x.slots) == 0 {
		return -1
	}
	return x.slots[x.slot(row)] - 1
}

// slot returns the slot of row, or the free slot where it would be.
func (x *Rows) slot(row uint32) int {
	i := int(uint64(row) * 0x9e3779b97f4a7c15 >> x.shift)
	for x.slots[i] != 0 && x.rows[x.slots[i]-1] != row {
		i = (i + 1) & (len(x.slots) - 1)
	}
	return i
}

func (x *Rows) grow() {
	n := max(64, 2*len(x.slots))
	x.slots, x.shift = make([]int32, n), 65-bits.Len(uint(n))
	for i, row := range x.rows {
		x.slots[x.slot(row)] = int32(i + 1)
	}
}
