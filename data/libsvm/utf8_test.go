package libsvm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Names of features in another encoding are hashed with U+FFFD in the place of what is no text, also in questions, and
// the lines of all files are counted.
func TestBytesThatAreNoTextAreReplacedAndCounted(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"x.train": "1 caf\xe9:1\n0 b:1 # \xff\n", "x.test": "1 caf\ufffd:1 caf\xe8:2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{HashBits: 20}
	s, err := LoadSplits(dir, o, Share{})
	if err != nil {
		t.Fatal(err)
	}
	if w := s.Warnings(); len(w) == 0 || !strings.Contains(w[0], "3 lines are not valid UTF-8") {
		t.Errorf("warnings %q", w)
	}
	p, err := NewParser(o)
	if err != nil {
		t.Fatal(err)
	}
	asked, _, err := p.Features([]byte("caf\xe9:1"))
	_, trained, _ := s.Train.Row(0)
	_, tested, values := s.Test.Row(0)
	if err != nil || !slices.Equal(asked, trained) || !slices.Equal(tested, trained) || values[0] != 3 {
		t.Errorf("asked for %v, trained %v, tested %v with %v, %v", asked, trained, tested, values, err)
	}
}
