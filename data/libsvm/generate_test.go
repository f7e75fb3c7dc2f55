package libsvm

import (
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestGeneratedExamplesAreAsTheirSpecSays(t *testing.T) {
	s := DefaultSpec()
	set, truth, bias, err := generate(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Check(); err != nil {
		t.Fatal(err)
	}
	st := set.Stats()
	if st.Examples != s.Examples || st.Width != s.Features || st.NonZeros != s.Examples*s.PerExample {
		t.Errorf("%+v does not fit %+v", st, s)
	}
	if share := float64(st.Positive) / float64(st.Examples); share < 0.4 || share > 0.6 {
		t.Errorf("%.2f of the examples are positive", share)
	}
	relevant := 0
	for _, w := range truth {
		if w != 0 {
			relevant++
		}
	}
	if relevant != s.Relevant {
		t.Errorf("%d features have weights, want %d", relevant, s.Relevant)
	}
	// The truth predicts what noise and the coins of the logistic leave.
	right := 0
	for i := range set.Len() {
		label, fs, _ := set.Row(i)
		m := float32(bias[0])
		for _, f := range fs {
			m += truth[f]
		}
		if (label > 0) == (m > 0) {
			right++
		}
	}
	if acc := float64(right) / float64(set.Len()); acc < 0.75 || acc > 0.9 {
		t.Errorf("the truth is right on %.3f of the examples", acc)
	}
}

func TestGeneratedLabelsAreOfTheClassesThatWereAskedFor(t *testing.T) {
	s := DefaultSpec()
	s.Examples, s.Features, s.Relevant, s.Noise = 10_000, 500, 100, 0
	for _, classes := range []int{0, 3, 10} {
		s.Classes = classes
		set, truth, bias, err := generate(s)
		if err != nil || len(set.Classes) != classes {
			t.Fatalf("%d classes: %q, %v", classes, set.Classes, err)
		}
		if err := set.Check(); err != nil {
			t.Fatal(err)
		}
		count, right, square := make([]int, max(classes, 1)), 0, 0.0
		for i := range set.Len() {
			y, fs, _ := set.Row(i)
			best, margins := 0, make([]float64, len(bias))
			for c := range margins {
				margins[c] = bias[c]
				for _, f := range fs {
					margins[c] += float64(truth[c*s.Features+int(f)])
				}
				if margins[c] > margins[best] {
					best = c
				}
			}
			if classes == 0 {
				square += float64(y) * float64(y)
				if math.Abs(margins[0]-float64(y)) > 1e-4 {
					t.Fatalf("example %d has the value %v, and the truth says %v", i, y, margins[0])
				}
				continue
			}
			count[int(y)]++
			if int(y) == best {
				right++
			}
		}
		if spread := math.Sqrt(square / 10_000); classes == 0 && (spread < 2 || spread > 8) {
			t.Errorf("values have a deviation of %v", spread)
		}
		if share := float64(right) / 10_000; classes > 0 && share < 0.7 {
			t.Errorf("of %d classes, the truth finds the right one for %.2f", classes, share)
		}
		for c, n := range count {
			if classes > 0 && n < 10_000/classes/3 {
				t.Errorf("of %d classes, %d has %d examples", classes, c, n)
			}
		}
	}
}

func TestPopularFeaturesFollowTheLawOfZipf(t *testing.T) {
	set, err := Generate(DefaultSpec())
	if err != nil {
		t.Fatal(err)
	}
	count := make([]float64, set.Width)
	for _, f := range set.Features {
		count[f]++
	}
	slices.SortFunc(count, func(a, b float64) int { return int(b - a) })
	shift := float64(set.Width) / 250
	want := (1 + shift) / (1000 + shift) // the popularity of rank 1000 by that of rank 1
	if got := count[999] / count[0]; math.Abs(got/want-1) > 0.5 {
		t.Errorf("rank 1000 is %.4f times as popular as rank 1, want about %.4f", got, want)
	}
}

func TestEqualSpecsGiveEqualExamplesAndOtherSeedsOthers(t *testing.T) {
	s := Spec{Examples: 100, Features: 50, PerExample: 50, Relevant: 50, Exponent: 2, Noise: 1, Seed: 3}
	a, err := Generate(s)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Generate(s)
	s.Seed++
	c, _ := Generate(s)
	if !reflect.DeepEqual(a, b) || reflect.DeepEqual(a, c) {
		t.Error("the seed does not decide the examples")
	}
}

func TestABadSpecSaysWhichFieldAndWhatWouldDo(t *testing.T) {
	for field, change := range map[string]func(*Spec){
		"Examples":   func(s *Spec) { s.Examples = 0 },
		"Features":   func(s *Spec) { s.Features = 1 },
		"PerExample": func(s *Spec) { s.PerExample = s.Features + 1 },
		"Relevant":   func(s *Spec) { s.Relevant = 0 },
		"Exponent":   func(s *Spec) { s.Exponent = math.NaN() },
		"Noise":      func(s *Spec) { s.Noise = 1.5 },
	} {
		s := DefaultSpec()
		change(&s)
		if _, err := Generate(s); err == nil || !strings.Contains(err.Error(), "Spec."+field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

func TestWrittenExamplesAreReadAgain(t *testing.T) {
	set, err := Generate(Spec{Examples: 500, Features: 100, PerExample: 5, Relevant: 10, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range set.Values {
		set.Values[i] = float32(i) / 7
	}
	path := filepath.Join(t.TempDir(), "set.txt")
	if err := set.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got.Width, got.Classes = set.Width, set.Classes
	if !reflect.DeepEqual(got, set) {
		t.Error("what was read differs from what was written")
	}
	if err := (&Set{Labels: []float32{1}}).Write(path); err == nil {
		t.Error("a broken set was written")
	}
	if err := set.Write(filepath.Join(path, "below")); err == nil {
		t.Error("a set was written below a file")
	}
}

func TestASplitDealsEveryExampleOnce(t *testing.T) {
	set := read(t, "1 1:1\n0 2:1\n1 3:1\n0 4:1\n1 9:1\n", Options{})
	rest, held := set.Split(4)
	if !reflect.DeepEqual(held.Features, []uint32{1, 9}) || !reflect.DeepEqual(rest.Features, []uint32{2, 3, 4}) {
		t.Errorf("held are %v, the rest %v", held.Features, rest.Features)
	}
	if rest.Width != 10 || held.Width != 10 || rest.Check() != nil || held.Check() != nil {
		t.Errorf("%+v, %+v", rest, held)
	}
}

func TestPickedExamplesKeepTheirOrderAndWidth(t *testing.T) {
	s := read(t, "1 1:1\n0 2:1\n1 3:1\n", Options{})
	some := s.Pick([]int{2, 0})
	if !reflect.DeepEqual(some.Features, []uint32{3, 1}) || some.Width != 4 || some.Check() != nil {
		t.Errorf("%+v", some)
	}
}
