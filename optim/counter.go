package optim

import (
	"fmt"
	"math"
)

// Counter adds whole numbers exactly, where float32 sums end at 2²⁴. A value is
// pairs of floats, low and high, that stand for the count low + 65,536·high
// ([Count] computes it). A push is such pairs too: (n, 0) adds n, |n| ≤ 2²³.
//
// The rule adds, and then carries from low to high. Carrying does not change the
// count, so what pushes did to copies adds up to all of them: the counts of
// merged copies are exact, as long as no more than 128 of them are merged
// between two pushes. Counts can be up to 2⁴⁰.
type Counter struct{}

// CounterBase is what one of a pair's high float stands for.
const CounterBase = 1 << 16

// Count is the count that a pair of floats stands for.
func Count(low, high float32) int64 { return int64(low) + CounterBase*int64(high) }

// Name returns "counter".
func (Counter) Name() string { return "counter" }

// CheckDim returns an error if values are no pairs of floats.
func (Counter) CheckDim(dim int) error {
	if dim%2 != 0 {
		return fmt.Errorf("values of %d floats, want pairs of them", dim)
	}
	return nil
}

// StateLen returns 0: the carry is part of the value, so that whoever pulls can
// compute the count.
func (Counter) StateLen(int) int { return 0 }

// InitState does nothing.
func (Counter) InitState([]float32) {}

// Apply adds the pushed pairs and carries.
func (Counter) Apply(value, _, push []float32) {
	push = push[:len(value)]
	for i := 0; i+1 < len(value); i += 2 {
		low := value[i] + push[i]
		if low >= 0 && low < CounterBase {
			value[i] = low
			value[i+1] += push[i+1]
			continue
		}
		carry := float32(math.Floor(float64(low) / CounterBase))
		value[i] = low - carry*CounterBase
		value[i+1] += push[i+1] + carry
	}
}
