package bagofwords

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/data/corpus"
)

// written writes files by name and returns their folder.
func written(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		b := []byte(text)
		if strings.HasSuffix(name, ".gz") {
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			if _, err := w.Write(b); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			b = z.Bytes()
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// all are options that leave out nothing.
var all = Options{Format: corpus.Prose, Length: 3, MinCount: 1}

func TestDocumentsOfUsersAreRead(t *testing.T) {
	// The words by falling frequency: b 4, a 3, c 1.
	want := &Set{Names: []string{"b", "a", "c"}, Words: []int32{1, 0, 0, 1, 2, 0, 0, 1}, Starts: []int{0, 3, 8}}
	lineOptions := all
	lineOptions.Documents = Line
	const cells = "1 1 1\n1 2 2\n2 1 1\n2 3 1\n2 2 2\n2 1 1\n"
	for name, c := range map[string]struct {
		files map[string]string
		o     Options
		path  string
	}{
		"lines":        {map[string]string{"d.txt": "A, b. B\n\n ... \na c b; b a\n"}, lineOptions, "d.txt"},
		"two files":    {map[string]string{"1.txt": "a b b", "2.txt.gz": "a c b b a\n", "x.md": "z"}, lineOptions, ""},
		"UCI":          {map[string]string{"docword.x.txt": "2\n3\n6\n" + cells, "vocab.x.txt": "a\nb\nc\n"}, all, "docword.x.txt"},
		"UCI, zipped":  {map[string]string{"docword.x.txt.gz": "2 3 6\n" + cells, "vocab.x.txt": "a\r\nb\r\nc"}, all, ""},
		"MatrixMarket": {map[string]string{"x.mtx": "%%MatrixMarket matrix coordinate integer general\n% made\n2 3 6\n" + cells, "x.vocab.txt": "a\nb\nc\n"}, all, "x.mtx"},
		"of reals":     {map[string]string{"x.mmc": "%%MatrixMarket matrix coordinate real general\n2 3 6\n" + strings.ReplaceAll(cells, "2 2 2", "2 2 2.0"), "x.vocab.txt": "a\nb\nc\n"}, all, ""},
	} {
		got, err := Load(filepath.Join(written(t, c.files), c.path), c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name != "lines" && name != "two files" { // cells come by words
			same := *want
			same.Words = []int32{1, 0, 0, 1, 2, 0, 0, 1}
			want = &same
		}
		if !reflect.DeepEqual(got.Names, want.Names) || !reflect.DeepEqual(got.Starts, want.Starts) || !reflect.DeepEqual(got.Words, want.Words) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	o := lineOptions
	o.MinCount, o.Skip = 2, 1
	if got, err := Load(filepath.Join(written(t, map[string]string{"d.txt": "a b b\nc\nb a\xff a\n"}), "d.txt"), o); err != nil || !reflect.DeepEqual(got, &Set{Names: []string{"a"}, Words: []int32{0, 0}, Starts: []int{0, 1, 2}, Replaced: 1}) {
		t.Errorf("frequent and rare words left out: %+v, %v", got, err)
	}
	if got, err := Load(filepath.Join(written(t, map[string]string{"x.mtx": "%%MatrixMarket matrix coordinate integer general\n1 9 1\n1 7 2\n"}), "x.mtx"), all); err != nil || !reflect.DeepEqual(got.Names, []string{"7"}) {
		t.Errorf("words without names: %+v, %v", got, err)
	}
}

func TestBadDocumentsAreNamed(t *testing.T) {
	const head = "2\n3\n2\n"
	for want, text := range map[string]string{
		"docword.x.txt:4: the document is \"3\"": head + "3 1 1\n",
		"docword.x.txt:4: the word is \"0\"":     head + "1 0 1\n",
		"docword.x.txt:5: the count is \"1.5\"":  head + "1 1 1\n1 2 1.5\n",
		"docword.x.txt:4: 2 fields":              head + "1 1\n",
		"ends 1 cells early":                     head + "1 1 1\n",
		"docword.x.txt:6: more cells":            head + "1 1 1\n1 1 1\n1 1 1\n",
		"docword.x.txt:2: \"x\"":                 "2\nx\n",
		"does not begin with the numbers":        "2\n3\n",
		"vocab.x.txt has 3 words, and":           "2\n4\n1\n1 4 1\n",
	} {
		dir := written(t, map[string]string{"docword.x.txt": text, "vocab.x.txt": "a\nb\nc\n"})
		if _, err := Load(dir, all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for want, files := range map[string]map[string]string{
		"vocab.x.txt:2: the word \"a\"": {"docword.x.txt": head, "vocab.x.txt": "a\na\n"},
		"both":                          {"docword.x.txt": head, "y.mtx": ""},
		"x.mtx:1: the first line":       {"x.mtx": "1 1 1\n1 1 1\n"},
		"--min-count, --skip":           {"x.mtx": "%%MatrixMarket matrix coordinate integer general\n1 1 0\n"},
	} {
		if _, err := Load(written(t, files), all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", files, err, want)
		}
	}
}

// FuzzMatrix holds that whatever is in a file of counts, it is read or refused.
func FuzzMatrix(f *testing.F) {
	f.Add("2\n3\n2\n1 1 1\n2 3 4\n", false)
	f.Add("%%MatrixMarket matrix coordinate integer general\n2 3 2\n1 1 1\n2 3 4\n", true)
	f.Add("1\n1\n1\n1 1 9999999\n", false)
	f.Fuzz(func(t *testing.T, text string, market bool) {
		path := filepath.Join(t.TempDir(), "docword.x.txt")
		if market {
			path = filepath.Join(t.TempDir(), "x.mtx")
		}
		if len(text) > 1<<12 || strings.Contains(text, "000000") {
			return // counts take memory, as they should
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		set, err := Load(path, all)
		if err != nil {
			return
		}
		if err := set.Check(); err != nil || len(set.Words) == 0 {
			t.Errorf("%q is read as %+v, %v", text, set, err)
		}
	})
}
