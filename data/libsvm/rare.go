package libsvm

import (
	"fmt"
	"slices"
)

// MaxLeast bounds the least count of [Splits.KeepFrequent]: counts end at what a
// byte holds.
const MaxLeast = full

// KeepFrequent removes features from all three sets that occur in fewer than least of
// the examples to train, 1 … MaxLeast; with 1 it keeps all. Of very many features, hashed
// names above all, most occur a few times at most. That is too little to learn a weight
// from, and yet each would need a row to keep and to send. The numbers of the others stay as they are, and
// examples stay even if they have no features left. It returns how many values
// were left out of the examples to train. The sets change in place, nothing may
// read them meanwhile.
//
// Counting takes one pass and a byte for each feature or four for each value,
// whichever is less: the latter is a count-min sketch, whose counts are never too
// small, so that no feature is left out that should stay. A few may stay that
// should not: a count is too large by 3 or more with a probability below 2%.
// Equal data give equal sets, so that nodes that each read all of them agree.
func (s *Splits) KeepFrequent(least int) (left int, err error) {
	if least < 1 || least > MaxLeast {
		return 0, fmt.Errorf("libsvm: features that stand in at least %d examples, want 1 (all features) … %d", least, MaxLeast)
	}
	if least == 1 {
		return 0, nil
	}
	before := len(s.Train.Features)
	counts := newSketch(before, max(s.Train.Width, s.Valid.Width, s.Test.Width))
	for _, f := range s.Train.Features {
		counts.add(f)
	}
	if !slices.ContainsFunc(s.Train.Features, func(f uint32) bool { return counts.count(f) >= least }) {
		return 0, fmt.Errorf("libsvm: no feature stands in %d of the %d examples to train: keep those that stand in fewer", least, s.Train.Len())
	}
	for _, set := range s.sets() {
		(*set).keep(func(f uint32) bool { return counts.count(f) >= least })
	}
	return before - len(s.Train.Features), nil
}

// keep leaves out the features that ok refuses, and gives their memory back.
func (s *Set) keep(ok func(feature uint32) bool) {
	n, from := 0, 0
	for i := range s.Len() {
		to := s.Starts[i+1]
		for k := from; k < to; k++ {
			if f := s.Features[k]; ok(f) {
				s.Features[n], s.Values[n] = f, s.Values[k]
				n++
			}
		}
		s.Starts[i+1], from = n, to
	}
	s.Features, s.Values = slices.Clone(s.Features[:n]), slices.Clone(s.Values[:n])
}
