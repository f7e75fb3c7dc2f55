package optim

import (
	"math"

	"github.com/godwit-ps/godwit"
)

var _, _, _ godwit.NonAdditive = Max{}, Min{}, Set{}

// Max keeps the largest of what was pushed, coordinate by coordinate, and of the
// value that the row began with: of zeros, unless the table has another
// initializer. It has no state. Copies merge to the largest of all: exactly what
// one row would have. A NaN that is pushed changes nothing.
type Max struct{}

// Name returns "max".
func (Max) Name() string { return "max" }

// StateLen returns 0.
func (Max) StateLen(int) int { return 0 }

// InitState does nothing.
func (Max) InitState([]float32) {}

// Apply raises the value to what is pushed.
func (Max) Apply(value, _, push []float32) { raise(value, push) }

// Pack leaves the coordinates that were raised, and of the others what raises
// nothing.
func (Max) Pack(value, _, dvalue []float32) { changed(dvalue, value, float32(math.Inf(-1))) }

// Merge raises the value to what another copy was raised to.
func (Max) Merge(value, _, dvalue []float32) { raise(value, dvalue) }

// Fresh returns dim.
func (Max) Fresh(dim int) int { return dim }

// NonAdditive says that values are no sums of pushes.
func (Max) NonAdditive() {}

// Min keeps the smallest, as [Max] keeps the largest.
type Min struct{}

// Name returns "min".
func (Min) Name() string { return "min" }

// StateLen returns 0.
func (Min) StateLen(int) int { return 0 }

// InitState does nothing.
func (Min) InitState([]float32) {}

// Apply lowers the value to what is pushed.
func (Min) Apply(value, _, push []float32) { lower(value, push) }

// Pack leaves the coordinates that were lowered, and of the others what lowers
// nothing.
func (Min) Pack(value, _, dvalue []float32) { changed(dvalue, value, float32(math.Inf(1))) }

// Merge lowers the value to what another copy was lowered to.
func (Min) Merge(value, _, dvalue []float32) { lower(value, dvalue) }

// Fresh returns dim.
func (Min) Fresh(dim int) int { return dim }

// NonAdditive says that values are no sums of pushes.
func (Min) NonAdditive() {}

// Set keeps what was pushed last, all coordinates of one push together. It has
// no state. Which of several nodes' pushes is the last is decided by the order in
// which they come to the owner; until a later one comes back from there, a node
// that holds a replica sees its own. Of the pushes that a node makes to its
// replica between two rounds, only the last is sent: the others are overwritten.
//
// [godwit.Worker.Set] does the same by a message to the owner each time: that is
// for values that are set now and then, in tables of any rule, and this for values
// that are written all the time.
type Set struct{}

// Name returns "set".
func (Set) Name() string { return "set" }

// StateLen returns 0.
func (Set) StateLen(int) int { return 0 }

// InitState does nothing.
func (Set) InitState([]float32) {}

// Apply overwrites the value.
func (Set) Apply(value, _, push []float32) { copy(value, push) }

// Pack leaves the value.
func (Set) Pack(value, _, dvalue []float32) { copy(dvalue, value) }

// Merge overwrites the value.
func (Set) Merge(value, _, dvalue []float32) { copy(value, dvalue) }

// Fresh returns dim.
func (Set) Fresh(dim int) int { return dim }

// NonAdditive says that values are no sums of pushes.
func (Set) NonAdditive() {}

func raise(x, by []float32) {
	by = by[:len(x)]
	for i, y := range by {
		if y > x[i] {
			x[i] = y
		}
	}
}

func lower(x, by []float32) {
	by = by[:len(x)]
	for i, y := range by {
		if y < x[i] {
			x[i] = y
		}
	}
}

// changed replaces differences by the value, where there is one, and by none
// where there is not.
func changed(diff, value []float32, none float32) {
	value = value[:len(diff)]
	for i, d := range diff {
		if d == 0 {
			diff[i] = none
		} else {
			diff[i] = value[i]
		}
	}
}
