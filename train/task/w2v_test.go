package task

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is in a step of one word is in no pair: nothing would be trained, and there would be no figure.
func TestASmallTextHasPairsOfWordsOrAWarning(t *testing.T) {
	for _, words := range []int{4, 8, 22, 100} {
		path := filepath.Join(t.TempDir(), "text.txt")
		if err := os.WriteFile(path, []byte(strings.Repeat("to be or not ", words/4)), 0o666); err != nil {
			t.Fatal(err)
		}
		for subsample, warned := range map[float64]bool{0: false, 1e-3: true} {
			s := DefaultW2V()
			s.MinCount, s.Subsample = 1, subsample
			loaded, err := s.Load(Setup{Data: path, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			if w := loaded.Warnings(); (len(w) == 1 && strings.Contains(w[0], "--subsample")) != warned || len(w) > 1 {
				t.Errorf("%d words, --subsample %v: warnings %q", words, subsample, w)
			}
		}
	}
}
