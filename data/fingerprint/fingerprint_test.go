package fingerprint

import "testing"

func TestWhatDiffersHasAnotherFingerprint(t *testing.T) {
	seen := map[string]string{}
	for name, feed := range map[string]func(h *Hash){
		"nothing":       func(*Hash) {},
		"a number":      func(h *Hash) { h.Number(1) },
		"another":       func(h *Hash) { h.Number(2) },
		"an id":         func(h *Hash) { h.ID(1) },
		"a float":       func(h *Hash) { h.Float(1) },
		"minus zero":    func(h *Hash) { h.Float(float32(-1 / 1e300 / 1e300)) },
		"no texts":      func(h *Hash) { h.Texts(nil) },
		"an empty text": func(h *Hash) { h.Texts([]string{""}) },
		"ab c":          func(h *Hash) { h.Texts([]string{"ab", "c"}) },
		"a bc":          func(h *Hash) { h.Texts([]string{"a", "bc"}) },
		"bytes":         func(h *Hash) { _, _ = h.Write([]byte("ab")) },
	} {
		var h, again Hash
		feed(&h)
		feed(&again)
		if h.String() != again.String() {
			t.Errorf("%s has two fingerprints", name)
		}
		if other, ok := seen[h.String()]; ok {
			t.Errorf("%s and %s have the same", name, other)
		}
		seen[h.String()] = name
	}
}
