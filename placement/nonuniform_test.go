package placement

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
)

func TestParametersOfAPolicyAreReadBackFromItsName(t *testing.T) {
	for _, text := range []string{"nonuniform", "nonuniform(factor=50)", "nonuniform(hot=900,rate=25)", "nonuniform(factor=0.5,rate=1000,threshold=0.001,clip=2)"} {
		p, err := ByName(text)
		if err != nil || p.Name() != text {
			t.Errorf("%q gave %v, %v", text, p, err)
		}
	}
	p, err := ByName("nonuniform(hot=900, rate=25, threshold=0.5, clip=2)")
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := HotRuleOf(p); !ok || r != (HotRule{Most: 900}) {
		t.Errorf("hot rule %+v, %v", r, ok)
	}
	if s := SyncOf(p); s != (Sync{Rate: 25, Threshold: 0.5, Clip: 2}) {
		t.Errorf("sync %+v", s)
	}
	for _, name := range Names() {
		p, _ := ByName(name)
		if _, ok := HotRuleOf(p); ok != (name == "nonuniform") || SyncOf(p) != (Sync{}) {
			t.Errorf("%s has a hot rule: %v, and syncs by %+v", name, ok, SyncOf(p))
		}
	}
	for text, want := range map[string]string{
		"nonuniform(rate=-1)":  "above 0",
		"nonuniform(hot=0.5)":  "whole number",
		"nonuniform(speed=1)":  "no parameter speed, only factor, hot, rate, threshold, clip",
		"adaptive(rate=1)":     "no parameters",
		"nonuniform(rate=1":    "bracket",
		"non-uniform(rate=25)": "there are",
	} {
		if _, err := ByName(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gave error %v, want one with %q", text, err, want)
		}
	}
}

func TestHotKeysArePickedByTheRule(t *testing.T) {
	for _, c := range []struct {
		what string
		rule HotRule
		want []godwit.Key
	}{
		{"more than 100 times the mean of 2", HotRule{}, []godwit.Key{3, 7}},
		{"more than 50 times", HotRule{Factor: 50}, []godwit.Key{3, 5, 7, 8}},
		{"more than 1000 times", HotRule{Factor: 1000}, []godwit.Key{}},
		{"more than half the mean", HotRule{Factor: 0.5}, []godwit.Key{3, 5, 7, 8}},
		{"the most frequent", HotRule{Most: 1}, []godwit.Key{3}},
		{"the three most frequent, of equals the first", HotRule{Most: 3, Factor: 1000}, []godwit.Key{3, 5, 7}},
		{"more than are accessed", HotRule{Most: 100}, []godwit.Key{1, 3, 5, 7, 8}},
	} {
		fs := []Frequency{{8, 200}, {7, 201}, {5, 200}, {3, 900}, {2, 0}, {1, 1}}
		if got := c.rule.Pick(fs, 2); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	// How many there are counts, and not how often they are accessed.
	if got := (HotRule{Most: 1}).Pick([]Frequency{{4, 1}, {5, 2}}, 2); !slices.Equal(got, []godwit.Key{5}) {
		t.Errorf("the most frequent, which is as frequent as the mean: %v", got)
	}
}

// Frequencies that are added one by one lead to the same hot keys as all together,
// and no more of them are kept than the rule asks for.
func TestFrequenciesMayBeGivenOneByOne(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 1))
		for _, r := range []HotRule{{}, {Factor: 2}, {Most: 1}, {Most: 3000}} {
			var all, some []Frequency
			for i := range 30_000 {
				f := Frequency{Key: godwit.Key(i), Count: float64(rng.IntN(1000))}
				all, some = append(all, f), r.Add(some, f)
			}
			if r.Most > 0 && len(some) > 2*r.Most+slack {
				t.Errorf("seed %d: %+v keeps %d frequencies", seed, r, len(some))
			}
			if want, got := r.Pick(all, 5), r.Pick(some, 5); !slices.Equal(got, want) || r.Most > 0 && len(got) != r.Most {
				t.Errorf("seed %d: %+v picks %d keys of those that were added, %d of all", seed, r, len(got), len(want))
			}
		}
	}
}
