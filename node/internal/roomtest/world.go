package roomtest

import "github.com/godwit-ps/godwit/internal/host"

// Sized is a world of N processors, for all that a team asks.
type Sized struct {
	host.World
	N int
}

// Processors returns N.
func (w Sized) Processors() int { return w.N }

// Yielding is a world of some processors that lets the helpers of a team run before others have done their parts.
type Yielding struct{ Sized }

// Worked lets others run.
func (w Yielding) Worked(host.Duty, int) { w.Yield() }
