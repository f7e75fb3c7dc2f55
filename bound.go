package godwit

import (
	"fmt"
	"math"
	"strconv"
)

// A Bound is a number of clocks by which something may lag. The zero Bound is no
// bound.
type Bound struct {
	above int // one more than the clocks; 0: no bound
}

// Eventual is no bound: updates arrive at some time.
var Eventual = Bound{}

// BulkSynchronous is the bound 0: reads see all updates of earlier clocks.
var BulkSynchronous = Within(0)

// MaxBound is the most clocks of a Bound.
const MaxBound = math.MaxInt32

// Within returns the bound of a number of clocks, 0 … MaxBound. [NewModel]
// refuses others.
func Within(clocks int) Bound {
	if clocks < 0 || clocks > MaxBound {
		return Bound{-1}
	}
	return Bound{clocks + 1}
}

// Clocks returns the number of clocks, and whether there is a bound at all.
func (b Bound) Clocks() (clocks Clock, ok bool) { return Clock(b.above - 1), b.above > 0 }

func (b Bound) valid() bool { return b.above >= 0 }

// String is the number of clocks, or "eventual".
func (b Bound) String() string {
	switch {
	case b.above == 0:
		return "eventual"
	case b.above < 0:
		return "invalid"
	}
	return strconv.Itoa(b.above - 1)
}

// MarshalText writes a bound as String does.
func (b Bound) MarshalText() ([]byte, error) {
	if !b.valid() {
		return nil, fmt.Errorf("godwit: a bound out of range: Within takes 0 … %d clocks", MaxBound)
	}
	return []byte(b.String()), nil
}

// UnmarshalText reads what String writes; empty text is [Eventual].
func (b *Bound) UnmarshalText(text []byte) error {
	if t := string(text); t == "" || t == Eventual.String() {
		*b = Eventual
		return nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 0 || n > MaxBound {
		return fmt.Errorf("godwit: a bound of %q, want \"eventual\" or a number of clocks, 0 … %d", text, MaxBound)
	}
	*b = Within(n)
	return nil
}
