package sampling

import "fmt"

// A Level is what a task asks of its samples: how closely they must conform to
// the target distribution. Each level promises less than the one before it and
// leaves the system more room to save communication. They are the conformity
// levels of NuPS (SIGMOD 2022, section 4).
type Level int

const (
	// IID: samples are independent of each other and each follows the target.
	IID Level = iota
	// Bounded: each sample follows the target, and samples of a worker that lie
	// at least a known number of draws apart are independent; nearer ones may
	// not be.
	Bounded
	// LongTerm: the frequencies of all samples that a worker draws tend to the
	// target's. A single sample may depend on what is local. Of small supports without replacement, see [Reuse].
	LongTerm
	// BestEffort: only the support is the target's.
	BestEffort
)

var levels = [...]struct {
	name   string
	scheme Scheme
}{
	IID:        {"iid", Prepared{}},
	Bounded:    {"bounded", Reuse{}},
	LongTerm:   {"long-term", Reuse{Postpone: true}},
	BestEffort: {"best-effort", Local{}},
}

// Levels returns all levels, the strictest first.
func Levels() []Level { return []Level{IID, Bounded, LongTerm, BestEffort} }

// String is how a command line calls the level.
func (l Level) String() string {
	if l.check() != nil {
		return fmt.Sprintf("level(%d)", int(l))
	}
	return levels[l].name
}

// Scheme returns the scheme that the system takes for a valid level: the one
// that sends least among those that promise it.
func (l Level) Scheme() Scheme { return levels[l].scheme }

func (l Level) check() error {
	if l < 0 || int(l) >= len(levels) {
		return fmt.Errorf("level %d does not exist, want %d … %d", int(l), IID, BestEffort)
	}
	return nil
}
