package tick

import "sync/atomic"

// A Setup tells whether the workers of a node still set their model up: none of them has
// advanced its clock. Any goroutine may ask.
type Setup struct {
	clocks Clocks
	over   atomic.Bool // a worker has advanced
}

// NewSetup returns the setup of a node with workers of these clocks.
func NewSetup(cs Clocks) *Setup { return &Setup{clocks: cs} }

// Going reports whether the workers still set their model up.
func (s *Setup) Going() bool {
	if s.over.Load() {
		return false
	}
	for _, c := range s.clocks {
		if c.Now() > 0 {
			s.over.Store(true)
			return false
		}
	}
	return true
}
