package libsvm

import "testing"

func TestSplitsThatDifferHaveOtherFingerprints(t *testing.T) {
	of := func(train, test string) string {
		return (&Splits{Train: read(t, train, Options{}), Test: read(t, test, Options{})}).Fingerprint()
	}
	const a, b = "1 1:1 3:0.5\n-1 2:1\n", "1 2:1\n"
	seen := map[string]bool{of(a, b): true}
	if !seen[of(a, b)] {
		t.Error("equal splits differ")
	}
	for _, x := range [][2]string{{b, a}, {a, a}, {"-1 1:1 3:0.5\n-1 2:1\n", b}, {"1 1:1 3:0.25\n-1 2:1\n", b}, {"1 1:1\n-1 2:1 3:0.5\n", b}} {
		if f := of(x[0], x[1]); seen[f] {
			t.Errorf("%q has the fingerprint of others", x)
		} else {
			seen[f] = true
		}
	}
}
