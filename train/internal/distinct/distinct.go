// Package distinct numbers the distinct rows of a batch, in the order of their
// first occurrence.
package distinct

import "math/bits"

// Rows is a set of rows with numbers 0, 1, … It is a hash table with linear
// probing that is reused for every batch, and grows when it is half full. The zero
// Rows is ready for use. It belongs to one goroutine.
type Rows struct {
	slots []uint64 // the row, and above it its number + 1; 0 is free
	rows  []uint32 // by number; so many as there may be before it grows
	n     int      // rows
	shift int
}

// above is how far above the row the number of a slot is.
const above = 32

// Reset removes all rows.
func (x *Rows) Reset() {
	clear(x.slots)
	x.n = 0
}

// All returns the rows by their numbers. The slice is valid until the next
// Reset or Add.
func (x *Rows) All() []uint32 { return x.rows[:x.n] }

// Len returns the number of rows.
func (x *Rows) Len() int { return x.n }

// Add returns the number of a row. A new row gets the next number.
func (x *Rows) Add(row uint32) int32 {
	if x.n == len(x.rows) {
		x.grow(x.n + 1)
	}
	i := x.slot(row)
	if x.slots[i] == 0 {
		x.rows[x.n] = row
		x.n++
		x.slots[i] = uint64(x.n)<<above | uint64(row)
	}
	return int32(x.slots[i]>>above) - 1
}

// Number writes the numbers of rows to dst, which is as long. It does what Add does for each of them. Whether a row is new no
// processor guesses, so nothing branches on that.
func (x *Rows) Number(dst []int32, rows []uint32) {
	if x.n+len(rows) > len(x.rows) {
		x.grow(x.n + len(rows))
	}
	slots, all, n := x.slots, x.rows, uint64(x.n)
	dst = dst[:len(rows)]
	for k, row := range rows {
		i := int(uint64(row) * factor >> (x.shift & 63))
		s := slots[i]
		for min(s, uint64(uint32(s)^row)) != 0 { // neither free nor the row's
			i = (i + 1) & (len(slots) - 1)
			s = slots[i]
		}
		next := n
		if s == 0 {
			next = n + 1
		}
		if s == 0 {
			s = next<<above | uint64(row)
		}
		slots[i] = s
		all[n] = row // of no meaning, unless it is new
		n = next
		dst[k] = int32(s>>above) - 1
	}
	x.n = int(n)
}

const factor = 0x9e3779b97f4a7c15

// slot returns the slot of row, or the free slot where it would be.
func (x *Rows) slot(row uint32) int {
	i := int(uint64(row) * factor >> (x.shift & 63))
	for x.slots[i] != 0 && uint32(x.slots[i]) != row {
		i = (i + 1) & (len(x.slots) - 1)
	}
	return i
}

// grow makes room for so many rows at least.
func (x *Rows) grow(n int) {
	size := max(64, 2*len(x.slots))
	for 2*n > size {
		size *= 2
	}
	rows := x.All()
	x.slots, x.shift = make([]uint64, size), 65-bits.Len(uint(size))
	x.rows = make([]uint32, size/2)
	for i, row := range rows {
		x.slots[x.slot(row)] = uint64(i+1)<<above | uint64(row)
		x.rows[i] = row
	}
}
