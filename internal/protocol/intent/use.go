package intent

import "github.com/godwit-ps/godwit"

// A Pace is how long the steps of a worker take it, and from which length on values are fetched ahead.
type Pace struct {
	Took    int64 // nanoseconds of the shortest of its last steps, at most MostPace; at least 1; 0: it has not made enough
	Long    int64 // from which on values are fetched ahead, at most MostPace; 0: never
	Fetched bool  // it fetched when this was measured
}

// MostPace is more than any length of a step that makes a difference: a second.
const MostPace = 1_000_000_000

// Fetches reports whether values are fetched ahead of steps. A worker whose steps were not measured begins with
// it, and one that fetches goes on until they take half as long.
func (p Pace) Fetches() bool {
	switch {
	case p.Long == 0:
		return false
	case p.Took == 0, p.Took >= p.Long:
		return true
	}
	return p.Fetched && p.Took >= p.Long/2
}

// A Use is what it is decided from how to get a key that a worker announced.
type Use struct {
	Pace
	Step   bool         // it is announced for one step, and its value may be of an earlier clock
	Window godwit.Clock // clocks ahead of which intents are acted on
}

// A Means is how to get a key.
type Means uint8

// The means.
const (
	Ask   Means = iota // want it, as the policy asks for it
	Fetch              // only fetch its value, ahead of the use
)

// Means returns how to get the key.
func (u *Use) Means() Means {
	if u.Step && u.Fetches() {
		return Fetch
	}
	return Ask
}
