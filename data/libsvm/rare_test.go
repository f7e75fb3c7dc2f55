package libsvm

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// wide are generated examples with too many features for a cell each.
func wide(t *testing.T) *Splits {
	t.Helper()
	set, err := Generate(Spec{Examples: 2500, Features: 1 << 19, PerExample: 30, Relevant: 100, Exponent: 1.3, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	for i := range set.Values {
		set.Values[i] = float32(i)
	}
	s := &Splits{Train: set}
	s.HoldOut(Share{Valid: 10, Test: 5})
	if newSketch(len(s.Train.Features), s.Train.Width).exact {
		t.Fatal("the features are counted exactly: the test is vacuous")
	}
	return s
}

func clone(s *Set) *Set {
	c := *s
	c.Labels, c.Starts, c.Features, c.Values = slices.Clone(s.Labels), slices.Clone(s.Starts), slices.Clone(s.Features), slices.Clone(s.Values)
	return &c
}

func TestRareFeaturesAreLeftOutAndAllOthersStay(t *testing.T) {
	for _, least := range []int{2, 5, 10} {
		s := wide(t)
		count := map[uint32]int{}
		for _, f := range s.Train.Features {
			count[f]++
		}
		var before [3]*Set
		for i, set := range s.sets() {
			before[i] = clone(*set)
		}
		left, err := s.KeepFrequent(least)
		if err != nil {
			t.Fatal(err)
		}
		stays := map[uint32]bool{}
		for _, f := range s.Train.Features {
			stays[f] = true
		}
		wrong := 0
		for f, n := range count {
			if n >= least && !stays[f] {
				t.Errorf("feature %d stands in %d examples and was left out", f, n)
			}
			if n < least && stays[f] {
				wrong++
			}
		}
		t.Logf("at least %d: %d of %d features stay, %d that need not, %d of %d values are left out", least, len(stays), len(count), wrong, left, len(before[0].Features))
		if left == 0 || left != len(before[0].Features)-len(s.Train.Features) || 50*wrong > len(count) {
			t.Errorf("at least %d: %d values left out of %d, %d features stay that should not", least, left, len(before[0].Features), wrong)
		}
		// What stays is what was there without the others, in all sets.
		for i, set := range s.sets() {
			got, old := *set, before[i]
			if err := got.Check(); err != nil || got.Len() != old.Len() || got.Width != old.Width {
				t.Fatalf("set %d has %d examples of width %d, had %d of %d; %v", i, got.Len(), got.Width, old.Len(), old.Width, err)
			}
			want := &Set{Width: old.Width}
			for e := range old.Len() {
				y, fs, vs := old.Row(e)
				var features []uint32
				var values []float32
				_, kept, _ := got.Row(e)
				for k, f := range fs {
					// What is not in train may stay by chance, and is of no use.
					if stays[f] || count[f] == 0 && slices.Contains(kept, f) {
						features, values = append(features, f), append(values, vs[k])
					}
				}
				want.Append(y, features, values)
			}
			if !reflect.DeepEqual(got.Starts, want.Starts) || !slices.Equal(got.Features, want.Features) || !slices.Equal(got.Values, want.Values) || !slices.Equal(got.Labels, want.Labels) {
				t.Errorf("at least %d: set %d is not what was there without rare features", least, i)
			}
		}
	}
}

func TestAllFeaturesStayUnlessAskedFor(t *testing.T) {
	s := wide(t)
	before := clone(s.Test) // has features that are not in train
	if left, err := s.KeepFrequent(1); left != 0 || err != nil || !reflect.DeepEqual(s.Test, before) {
		t.Errorf("%d values left out, %v", left, err)
	}
}

func TestALeastCountThatLeavesNothingOrIsOutOfRangeIsRefused(t *testing.T) {
	for least, want := range map[int]string{-1: "1 (all", 0: "1 (all", 256: "255", 3: "no feature stands in 3 of the 2 examples"} {
		s := &Splits{Train: read(t, "1 1:1 2:1\n0 1:1\n", Options{}), Valid: &Set{}, Test: &Set{}}
		if _, err := s.KeepFrequent(least); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: error %v, want one that says %q", least, err, want)
		}
	}
}
