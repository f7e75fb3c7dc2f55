package corpus

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestGeneratedTextHasWhatItSays(t *testing.T) {
	spec := DefaultSpec()
	g, err := Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	c, err := FromText("generated", g.Text, Options{MinCount: 5, Block: 500})
	if err != nil {
		t.Fatal(err)
	}
	if n := c.Stats.Words; n < int64(spec.Words) || n > int64(spec.Words)+10 {
		t.Errorf("%d words, want %d", n, spec.Words)
	}
	want := spec.Stems*spec.Forms + (spec.Stems+spec.Forms)*companions + fillers
	if n := c.Stats.Distinct; n != want || len(c.Vocabulary.Words) != want {
		t.Errorf("%d different words, %d in the vocabulary, want %d", n, len(c.Vocabulary.Words), want)
	}
	for _, a := range g.Analogies {
		for _, w := range a {
			if _, ok := c.Vocabulary.ID(w); !ok {
				t.Fatalf("%q of %v is no word of the text", w, a)
			}
		}
		if a[0] == a[1] || a[0] == a[2] || a[1] == a[3] {
			t.Fatalf("%v is no question", a)
		}
	}
	for _, group := range g.Companions {
		for _, w := range group {
			if _, ok := c.Vocabulary.ID(w); !ok {
				t.Fatalf("companion %q is no word of the text", w)
			}
		}
	}
}

func TestEqualSpecsGiveEqualTexts(t *testing.T) {
	spec := Spec{Stems: 5, Forms: 12, Words: 6000, Seed: 3}
	a, err := Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	spec.Seed++
	other, err := Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Text, b.Text) || bytes.Equal(a.Text, other.Text) {
		t.Error("the seed does not decide the text")
	}
}

func TestPopularityFollowsItsExponent(t *testing.T) {
	for _, exponent := range []float64{0, 1, 2} {
		g, err := Generate(Spec{Stems: 20, Forms: 2, Words: 200_000, Exponent: exponent, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		c, err := FromText("x", g.Text, Options{MinCount: 1, Block: 100})
		if err != nil {
			t.Fatal(err)
		}
		count := func(stem int) (n float64) { // of its companions, which are as popular
			for _, w := range g.Companions[stem] {
				id, _ := c.Vocabulary.ID(w)
				n += float64(c.Vocabulary.Counts[id])
			}
			return n
		}
		got, want := count(0)/count(19), math.Pow(22./3, exponent)
		if math.Abs(got-want) > 0.15*want {
			t.Errorf("exponent %v: the first stem is %.2f times as popular as the last, want %.2f", exponent, got, want)
		}
	}
}

func TestBadSpecsAreNamed(t *testing.T) {
	for _, c := range []struct {
		set  func(*Spec)
		want string
	}{
		{func(s *Spec) { *s = Spec{} }, "Stems"},
		{func(s *Spec) { s.Stems = maxStems + 1 }, "Stems"},
		{func(s *Spec) { s.Forms = 1 }, "Forms"},
		{func(s *Spec) { s.Words = 100 }, "Words"},
		{func(s *Spec) { s.Exponent = math.NaN() }, "Exponent"},
	} {
		s := DefaultSpec()
		c.set(&s)
		if _, err := Generate(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one that mentions %q", s, err, c.want)
		}
	}
}
