package ratings

import "testing"

func TestSetsThatDifferHaveOtherFingerprints(t *testing.T) {
	set := func() *Set {
		return &Set{Rows: 2, Cols: 2, RowNames: []string{"a", "b"}, Train: []Rating{{0, 1, 3}, {1, 0, 4}}, Test: []Rating{{1, 1, 5}}}
	}
	seen := map[string]string{set().Fingerprint(): "nothing"}
	if seen[set().Fingerprint()] == "" {
		t.Error("equal sets differ")
	}
	for what, change := range map[string]func(s *Set){
		"a name":        func(s *Set) { s.RowNames[0] = "c" },
		"a size":        func(s *Set) { s.Cols = 3 },
		"a value":       func(s *Set) { s.Train[0].Value = 2 },
		"a column":      func(s *Set) { s.Test[0].Col = 0 },
		"another split": func(s *Set) { s.Valid, s.Test = s.Test, nil },
	} {
		s := set()
		change(s)
		if other, ok := seen[s.Fingerprint()]; ok {
			t.Errorf("changing %s and %s gives the same fingerprint", what, other)
		}
		seen[s.Fingerprint()] = what
	}
}
