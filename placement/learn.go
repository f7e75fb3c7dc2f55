package placement

// A LearningPolicy is a [Policy] under which a node may ask for keys that its workers
// access again and again at other nodes without having announced them: for a copy where the
// table allows that ([godwit.Table].Relaxed), else for the key itself. Decide is asked as if
// a worker had asked.
type LearningPolicy interface {
	Policy
	// Learns says whether nodes do so.
	Learns() bool
}

// Learns reports whether nodes ask for keys that nobody announced under a policy.
func Learns(p Policy) bool {
	x, ok := p.(LearningPolicy)
	return ok && x.Learns()
}
