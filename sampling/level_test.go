package sampling

import (
	"slices"
	"strings"
	"testing"
)

func TestSchemesAreFoundByTheirNames(t *testing.T) {
	for _, want := range append(schemes(), Local{Tries: 8}, Reuse{Uses: 64}, Reuse{Pool: 10, Postpone: true}) {
		if got, err := SchemeNamed(want.Name()); err != nil || got != want {
			t.Errorf("%q gave %#v, %v", want.Name(), got, err)
		}
	}
	if got, err := SchemeNamed(" reuse( uses = 3 ,pool=20) "); err != nil || got != (Reuse{Pool: 20, Uses: 3}) {
		t.Errorf("a name with spaces gave %#v, %v", got, err)
	}
	for text, want := range map[string]string{
		"magic":                    "postpone",
		"":                         "postpone",
		"reuse(uses=3":             "closing bracket",
		"reuse(uses=0)":            "whole number",
		"reuse(uses=3,uses=4)":     "twice",
		"reuse(uses)":              "name=number",
		"reuse(tries=3)":           "no parameter tries, only pool, uses",
		"prepared(uses=3)":         "no parameters",
		"reuse(pool=1000000000)":   "want 1 … 1048576",
		"reuse(pool=100000000000)": "whole number",
	} {
		if _, err := SchemeNamed(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gave error %v, want one with %q", text, err, want)
		}
	}
}

func TestNamesOfSchemesAndLevelsAreDistinct(t *testing.T) {
	all := strings.Split(names(Schemes(), Scheme.Name)+", "+names(Levels(), Level.String), ", ")
	if n := len(all); len(slices.Compact(slices.Sorted(slices.Values(all)))) != n {
		t.Errorf("two of %v are equal", all)
	}
}

func TestALevelPicksASchemeThatPromisesIt(t *testing.T) {
	for _, l := range Levels() {
		if got := l.Scheme().Level(); got != l {
			t.Errorf("level %v picks %s, which promises %v", l, l.Scheme().Name(), got)
		}
		if got, err := SchemeNamed(l.String()); err != nil || got != l.Scheme() {
			t.Errorf("%q gave %v, %v", l, got, err)
		}
		spec := Spec{Table: 1, Dist: Uniform(16), Level: l}
		s, err := New(spec, testModel(t, 16), 1)
		if err != nil {
			t.Fatal(err)
		}
		if s.how != l.Scheme() {
			t.Errorf("a spec of level %v draws by %s", l, s.how.Name())
		}
		spec.Scheme = Independent{}
		if s, err = New(spec, testModel(t, 16), 1); err != nil || s.how != spec.Scheme {
			t.Errorf("a spec of level %v and scheme %s: %v, %v", l, spec.Scheme.Name(), s.how.Name(), err)
		}
	}
	// The stricter a level is, the fewer schemes promise it.
	if !slices.IsSortedFunc(Schemes(), func(a, b Scheme) int { return int(a.Level() - b.Level()) }) {
		t.Errorf("schemes %s are not in the order of their levels", names(Schemes(), Scheme.Name))
	}
}

func TestFingerprintsTellWhatIsDrawnDifferently(t *testing.T) {
	base := Spec{Name: "n", Table: 1, Dist: Uniform(16), Level: Bounded}
	same := base
	same.Scheme, same.Level = Reuse{}, IID
	if base.Fingerprint() != same.Fingerprint() {
		t.Errorf("%q and %q draw the same", base.Fingerprint(), same.Fingerprint())
	}
	for what, change := range map[string]func(*Spec){
		"name":         func(s *Spec) { s.Name = "m" },
		"table":        func(s *Spec) { s.Table = 0 },
		"distribution": func(s *Spec) { s.Dist = LogUniform(16) },
		"level":        func(s *Spec) { s.Level = LongTerm },
		"parameter":    func(s *Spec) { s.Scheme = Reuse{Uses: 3} },
		"distinct":     func(s *Spec) { s.Distinct = true },
	} {
		other := base
		change(&other)
		if other.Fingerprint() == base.Fingerprint() {
			t.Errorf("the fingerprint does not tell another %s", what)
		}
	}
}
