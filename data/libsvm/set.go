package libsvm

import (
	"fmt"
	"slices"
)

// A Set is a list of examples in compressed rows: example i has the features
// Features[Starts[i]:Starts[i+1]], ascending, with the Values beside them. It is
// plain data: any number of goroutines may read it while none changes it.
type Set struct {
	// Labels are one of each example: the number of its class, 0 … len(Classes)-1, or, if
	// there are no classes, the value that belongs to it, a finite one.
	Labels   []float32
	Starts   []int     // one more than examples; Starts[0] is 0
	Features []uint32  // of all examples, ascending within one; 0 … Width-1
	Values   []float32 // of Features, one each; finite
	// Width is one more than the largest feature, or what the reader was told:
	// features are 0 … Width-1.
	Width int
	// Classes are the labels of the classes as they are written, of negative examples before that
	// of positive ones where there are two. Empty: labels are values.
	Classes []string

	mended int // lines that were not UTF-8
}

// Len returns the number of examples.
func (s *Set) Len() int { return len(s.Labels) }

// Row returns example i: its label, its features and their values. The slices
// belong to the set.
func (s *Set) Row(i int) (label float32, features []uint32, values []float32) {
	from, to := s.Starts[i], s.Starts[i+1]
	return s.Labels[i], s.Features[from:to:to], s.Values[from:to:to]
}

// Append adds an example, whose features must be ascending.
func (s *Set) Append(label float32, features []uint32, values []float32) {
	if len(s.Starts) == 0 {
		s.Starts = append(s.Starts, 0)
	}
	s.Labels = append(s.Labels, label)
	s.Features = append(s.Features, features...)
	s.Values = append(s.Values, values...)
	s.Starts = append(s.Starts, len(s.Features))
	if n := len(features); n > 0 {
		s.Width = max(s.Width, int(features[n-1])+1)
	}
}

// Split divides the examples into two sets: every nth example, the first one first, goes to the
// second set. Both have the width of s.
func (s *Set) Split(n int) (rest, held *Set) {
	rest, held = &Set{Classes: s.Classes}, &Set{Classes: s.Classes}
	for i := range s.Len() {
		to := rest
		if i%n == 0 {
			to = held
		}
		to.Append(s.Row(i))
	}
	rest.Width, held.Width = s.Width, s.Width
	return rest, held
}

// Pick returns the examples of some numbers, as a set of the same width.
func (s *Set) Pick(examples []int) *Set {
	some := &Set{Classes: s.Classes}
	for _, i := range examples {
		some.Append(s.Row(i))
	}
	some.Width = s.Width
	return some
}

// Check returns an error if the fields are inconsistent. Sets that this package made are
// valid.
func (s *Set) Check() error {
	switch n := len(s.Features); {
	case len(s.Starts) != s.Len()+1 && (s.Len() > 0 || len(s.Starts) > 0):
		return fmt.Errorf("libsvm: %d starts for %d examples, want one more", len(s.Starts), s.Len())
	case len(s.Values) != n:
		return fmt.Errorf("libsvm: %d values for %d features", len(s.Values), n)
	case len(s.Starts) > 0 && (s.Starts[0] != 0 || s.Starts[s.Len()] != n):
		return fmt.Errorf("libsvm: starts from %d to %d for %d features", s.Starts[0], s.Starts[s.Len()], n)
	case len(s.Starts) == 0 && n > 0:
		return fmt.Errorf("libsvm: %d features without examples", n)
	case !slices.IsSorted(s.Starts):
		return fmt.Errorf("libsvm: the starts do not ascend")
	}
	for i := range s.Len() {
		y, fs, _ := s.Row(i)
		if err := s.checkLabel(y); err != nil {
			return fmt.Errorf("libsvm: example %d: %w", i, err)
		}
		for k, f := range fs {
			if k > 0 && f <= fs[k-1] || int(f) >= s.Width {
				return fmt.Errorf("libsvm: example %d has feature %d, want ascending ones below %d", i, f, s.Width)
			}
		}
	}
	return nil
}

func (s *Set) checkLabel(y float32) error {
	switch n := len(s.Classes); {
	case y-y != 0:
		return fmt.Errorf("label %v, want a finite number", y)
	case n > 0 && !(y >= 0 && y < float32(n) && y == float32(int(y))):
		return fmt.Errorf("label %v, want a number of the %d classes, from 0 on", y, n)
	}
	return nil
}

// Stats are the counts of a set.
type Stats struct {
	Examples int // of both labels
	Positive int // of the second of two classes
	Classes  int // 0: labels are values
	Width    int // features 0 … Width-1, of which
	Used     int // occur
	NonZeros int // pairs of all examples
}

// Stats counts.
func (s *Set) Stats() Stats {
	st := Stats{Examples: s.Len(), Classes: len(s.Classes), Width: s.Width, NonZeros: len(s.Features)}
	if st.Classes == 2 {
		for _, y := range s.Labels {
			st.Positive += int(y)
		}
	}
	used, _ := s.Used()
	st.Used = len(used)
	return st
}

// Used returns the features that occur, ascending, and how often each does. It takes
// memory for the values of the set, not for the features that there could be.
func (s *Set) Used() (features []uint32, counts []int32) {
	if s.Dense() {
		return s.countAll()
	}
	sorted := slices.Clone(s.Features)
	slices.Sort(sorted)
	for i, f := range sorted {
		if i == 0 || f != sorted[i-1] {
			features, counts = append(features, f), append(counts, 0)
		}
		counts[len(counts)-1]++
	}
	return features, counts
}

// Dense reports whether a list with a place for each feature takes no more memory
// than the set does.
func (s *Set) Dense() bool { return s.Width <= 2*len(s.Features)+1<<12 }

// countAll is Used by a count for each feature.
func (s *Set) countAll() (features []uint32, counts []int32) {
	all := make([]int32, s.Width)
	for _, f := range s.Features {
		all[f]++
	}
	for f, n := range all {
		if n > 0 {
			features, counts = append(features, uint32(f)), append(counts, n)
		}
	}
	return features, counts
}

// String gives the counts in one line.
func (s Stats) String() string {
	if s.Examples == 0 {
		return "no examples"
	}
	labels := fmt.Sprintf("%d classes", s.Classes)
	switch s.Classes {
	case 0:
		labels = "with values"
	case 2:
		labels = fmt.Sprintf("%.1f%% positive", 100*float64(s.Positive)/float64(s.Examples))
	}
	return fmt.Sprintf("%d examples, %s, %d of %d features used, %.1f per example",
		s.Examples, labels, s.Used, s.Width, float64(s.NonZeros)/float64(s.Examples))
}
