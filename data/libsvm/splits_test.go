package libsvm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func files(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, name := range names {
		// Feature i+1 tells the file apart; train has twelve examples.
		text := strings.Repeat("1 "+itoa(i+1)+":1\n0 7:1\n", 6)
		if strings.HasSuffix(name, ".gz") {
			text = zipped(t, text)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestNamesOfFilesSayWhatTheyAreFor(t *testing.T) {
	for _, c := range []struct {
		names []string // train, valid, test; fewer where the others are held out
		open  string   // in the folder
		sizes [3]int
	}{
		{[]string{"train.txt", "valid.txt", "test.txt"}, "", [3]int{12, 12, 12}},
		{[]string{"f.train.libfm.gz", "f.validation.libfm.gz", "f.test.libfm"}, "", [3]int{12, 12, 12}},
		{[]string{"ads_train", "ads-dev"}, "", [3]int{8, 12, 4}},
		{[]string{"a9a.gz"}, "", [3]int{6, 2, 4}},
		{[]string{"a9a.gz"}, "a9a.gz", [3]int{6, 2, 4}},
		{[]string{"a9a.gz", ".hidden", "a9a.t.gz"}, "a9a.gz", [3]int{9, 3, 12}},
		{[]string{"a9a", ".hidden", "a9a.t"}, "", [3]int{9, 3, 12}},
	} {
		s, err := LoadSplits(filepath.Join(files(t, c.names...), c.open), Options{}, Share{Valid: 4, Test: 3})
		if err != nil {
			t.Errorf("%v: %v", c.names, err)
			continue
		}
		if got := [3]int{s.Train.Len(), s.Valid.Len(), s.Test.Len()}; got != c.sizes {
			t.Errorf("%v: splits of %v examples, want %v", c.names, got, c.sizes)
		}
		for _, set := range s.sets() {
			if (*set).Width != 8 || (*set).Check() != nil {
				t.Errorf("%v: width %d, %v", c.names, (*set).Width, (*set).Check())
			}
		}
		if !slices.Contains(s.Train.Features, 1) {
			t.Errorf("%v: train is another file", c.names)
		}
	}
}

func TestFewExamplesThatAreAllHeldOutAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "few")
	for n, want := range []string{"holds no examples", "all examples to train, 1, are held out", "all examples to train, 2, are held out", ""} {
		if err := os.WriteFile(path, []byte(strings.Repeat("1 1:1\n", n)), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := LoadSplits(path, Options{}, Share{Valid: 20, Test: 10})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%d examples: error %v, want one that names the file and says %q", n, err, want)
		}
	}
}

func TestFoldersThatSayTooLittleOrTooMuchAreRefused(t *testing.T) {
	for want, names := range map[string][]string{
		"both ":                {"train.txt", "train.gz"},
		"no file in":           {"valid", "test"},
		"whose name says":      {"a", "b"},
		"is for training; hav": {},
	} {
		dir := files(t, names...)
		if _, err := LoadSplits(dir, Options{}, Share{}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%v: error %v, want one that names the folder and says %q", names, err, want)
		}
	}
	if _, err := LoadSplits(filepath.Join(t.TempDir(), "none"), Options{}, Share{}); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a missing path: %v", err)
	}
	for _, s := range []Share{{Valid: 1}, {Test: -1}} {
		if _, err := LoadSplits(files(t, "train"), Options{}, s); err == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
}
