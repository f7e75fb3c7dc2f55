package triples

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/data/lines"
)

// folder writes files by name and returns their folder. Names of splits that
// are not given are written empty.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, s := range splitNames {
		_, plain := files[s+".txt"]
		if _, gz := files[s+".txt.gz"]; !plain && !gz {
			files[s+".txt"] = ""
		}
	}
	for name, text := range files {
		if text == "-" {
			continue // a file that is missing
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func zipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestNamesAreNumberedByFirstAppearanceAcrossSplits(t *testing.T) {
	g, err := Load(folder(t, map[string]string{
		"train.txt":    "b\tlikes\ta\na\tknows\tc d\n",
		"valid.txt.gz": zipped(t, "e\tlikes\tb\n"),
		"test.txt":     "a\thates\te\n",
	}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := &Graph{
		Entities: []string{"b", "a", "c d", "e"}, Relations: []string{"likes", "knows", "hates"},
		Train: []Triple{{0, 0, 1}, {1, 1, 2}}, Valid: []Triple{{3, 0, 0}}, Test: []Triple{{1, 2, 3}},
	}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("got %+v, want %+v", g, want)
	}
}

func TestVariantsOfTheSameTextGiveTheSameGraph(t *testing.T) {
	const plain = "a\tr\tb\nb\tr\tc\n"
	want, err := Load(folder(t, map[string]string{"train.txt": plain}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]map[string]string{
		"no last line end":     {"train.txt": "a\tr\tb\nb\tr\tc"},
		"CR LF":                {"train.txt": "a\tr\tb\r\nb\tr\tc\r\n"},
		"byte order mark":      {"train.txt": "\ufeff" + plain},
		"empty lines":          {"train.txt": "\n\r\na\tr\tb\n\nb\tr\tc\n\n"},
		"spaces":               {"train.txt": "a r b\n b  r  c \n"},
		"gzip":                 {"train.txt.gz": zipped(t, plain)},
		"gzip in two members":  {"train.txt.gz": zipped(t, "a\tr\tb\nb\t") + zipped(t, "r\tc\n")},
		"a mark in every file": {"train.txt": plain, "valid.txt": "\ufeff", "test.txt": "\ufeff"},
	} {
		if g, err := Load(folder(t, files), Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(g, want) {
			t.Errorf("%s: got %+v, want %+v", name, g, want)
		}
	}
}

func TestABadLineIsReportedWithFileLineAndReason(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	z := zipped(t, strings.Repeat("some\tlonger\tline\n", 100))
	broken := []byte(z)
	broken[len(broken)-6] ^= 1
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"too few fields":       {"train.txt", "a\tr\tb\na\tr\n", []string{"train.txt:2:", "2 fields separated by tabs, want 3"}},
		"too many fields":      {"valid.txt", "a\tr\tb\tc\n", []string{"valid.txt:1:", "4 fields separated by tabs"}},
		"a tab forgotten":      {"train.txt", "a\tr\tb\na r b\n", []string{"train.txt:2:", "1 field separated by tabs"}},
		"too few words":        {"train.txt", "a r b\n\na b\n", []string{"train.txt:3:", "2 fields separated by spaces"}},
		"empty field":          {"train.txt", "a\t\tb\n", []string{"train.txt:1:", "the relation, field 2, is empty"}},
		"field of spaces":      {"train.txt", "a\tr\t \n", []string{"train.txt:1:", "the tail, field 3, is empty"}},
		"only spaces":          {"train.txt", "a r b\n  \n", []string{"train.txt:2:", "only spaces"}},
		"NUL":                  {"train.txt", "a\tr\tb\x00\n", []string{"train.txt:1:", "NUL"}},
		"old line ends":        {"train.txt", "a\tr\tb\rb\tr\tc\r", []string{"train.txt:1:", "carriage return"}},
		"line too long":        {"train.txt", "a\tr\tb\na\tr\t" + long + "\n", []string{"train.txt:2:", "longer than 65536"}},
		"last line too long":   {"train.txt", "a\tr\t" + long, []string{"train.txt:1:", "longer than 65536"}},
		"truncated gzip":       {"train.txt.gz", z[:len(z)-9], []string{"train.txt.gz:", "ends early"}},
		"gzip without trailer": {"train.txt.gz", z[:len(z)-3], []string{"train.txt.gz:", "ends early"}},
		"empty gzip":           {"train.txt.gz", "", []string{"train.txt.gz", "ends early"}},
		"damaged gzip":         {"train.txt.gz", string(broken), []string{"train.txt.gz:", "damaged"}},
		"not gzip":             {"train.txt.gz", "a\tr\tb\na\tr\tb\n", []string{"train.txt.gz", "not gzip"}},
		"junk after gzip":      {"train.txt.gz", z + "this is not a gzip header", []string{"train.txt.gz:", "not gzip data, or followed"}},
		"gzip called txt":      {"train.txt", z, []string{"train.txt:1:", "NUL"}},
		"no triples":           {"train.txt", "\n\n", []string{"train.txt", "no facts to train"}},
	} {
		_, err := Load(folder(t, map[string]string{c.file: c.text}), Options{})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q does not say %q", name, err, w)
			}
		}
	}
}

func TestALongestLineIsRead(t *testing.T) {
	text := "a\tr\t" + strings.Repeat("x", maxLine-4)
	for _, end := range []string{"", "\n", "\r\n"} {
		if _, err := Load(folder(t, map[string]string{"train.txt": text + end}), Options{}); err != nil {
			t.Errorf("with end %q: %v", end, err)
		}
	}
}

func TestMissingAndDoubleFilesAreNamed(t *testing.T) {
	dir := folder(t, map[string]string{"train.txt": "-"})
	_, err := Load(dir, Options{})
	if err == nil || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no train.txt in "+dir) {
		t.Errorf("missing train file: %v", err)
	}
	if _, err := Load(filepath.Join(dir, "nothing"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	dir = folder(t, map[string]string{"train.txt": "a\tr\tb\n", "train.txt.gz": zipped(t, "a\tr\tb\n")})
	if _, err := Load(dir, Options{}); err == nil || !strings.Contains(err.Error(), "both ") {
		t.Errorf("two train files: %v", err)
	}
}

func TestColumnsCanComeInAnyOrder(t *testing.T) {
	dir := folder(t, map[string]string{"train.txt": "r\tb\ta\n"})
	g, err := Load(dir, Options{Columns: "relation,head,tail"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(g.Entities, []string{"b", "a"}) || !slices.Equal(g.Relations, []string{"r"}) || g.Train[0] != (Triple{0, 0, 1}) {
		t.Errorf("got %+v", g)
	}
	for _, bad := range []string{"head", "head,relation", "head,relation,relation", "head,relation,tail,x", ",,", "head relation tail"} {
		if _, err := Load(dir, Options{Columns: bad}); err == nil {
			t.Errorf("columns %q were accepted", bad)
		}
	}
}

func TestStatsCountRepeatsLeaksAndTheUnlearnable(t *testing.T) {
	g, err := Load(folder(t, map[string]string{
		"train.txt": "a r b\na r b\nb r a\na r b\n",
		"valid.txt": "a r b\na r new\n",
		"test.txt":  "a r new\na other b\na r b\nb r b\n",
	}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := Stats{
		Entities: 3, Relations: 2, Train: 4, Valid: 2, Test: 4,
		Duplicates: 2, Leaked: 3, UnseenEntities: 1, UnseenRelations: 1, UnseenTriples: 3,
	}
	if got := g.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if s := want.String(); !strings.Contains(s, "2 duplicate") || !strings.Contains(s, "1 entities outside train") {
		t.Errorf("printed as %q", s)
	}
}

// FuzzFields holds every accepted line against a slow reading of the rules.
func FuzzFields(f *testing.F) {
	for _, s := range []string{"a\tr\tb", "a r b", "", " ", "\t\t", "a\t\tb", "a\tr\tb\tc", "\xff\t\t", "a b\tr\tc d", "a\x00\tr\tb", "\u00a0\tr\tb"} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, line []byte, tabs bool) {
		p := splitter{layout: layout{columns: 3, at: [3]int{0, 1, 2}}, by: blank}
		if tabs {
			p.by = tab
		}
		got, err := p.split(line)
		if err != nil {
			return
		}
		var want []string
		if tabs {
			want = strings.Split(string(line), "\t")
		} else {
			want = strings.FieldsFunc(string(line), func(r rune) bool { return r == ' ' || r == '\t' })
		}
		if len(want) != 3 {
			t.Fatalf("%q was accepted with %d fields", line, len(want))
		}
		for i := range want {
			if string(got[i]) != want[i] || strings.Trim(want[i], " ") == "" {
				t.Fatalf("field %d of %q is %q, want %q, not empty", i, line, got[i], want[i])
			}
		}
	})
}

// FuzzRead holds that whatever is read can be written and read again alike.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"a\tr\tb\n", "\ufeffa r b\r\n\r\nb r a", "a\tr\tb\rc", "x", "a\tr\t\ufeffb\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := graphOf(text)
		if err != nil {
			return
		}
		if err := g.check(); err != nil {
			if strings.Contains(string(text[1:]), "\ufeff") {
				return // a mark at the start of a name can be read but not be written
			}
			t.Fatalf("what was read cannot be written: %v", err)
		}
		var to bytes.Buffer
		g.writeTriples(&to, g.Train)
		again, err := graphOf(to.Bytes())
		if err != nil || !reflect.DeepEqual(g, again) {
			t.Fatalf("read again: %v, %+v, want %+v", err, again, g)
		}
	})
}

// graphOf reads the triples of a text.
func graphOf(text []byte) (g *Graph, err error) {
	g = &Graph{}
	l, err := newLoader(g, Options{Header: HeaderNo})
	if err != nil {
		return nil, err
	}
	g.Train, err = l.read(lines.New("text", bytes.NewReader(text), 1<<10), "text")
	return g, err
}

// data returns the folder of a real data set.
func data(t testing.TB, name string) string {
	root := os.Getenv("GODWIT_DATA")
	if root == "" {
		t.Skip("GODWIT_DATA is not set: it names a folder with real data sets, such as kge/fb15k-237")
	}
	return filepath.Join(root, "kge", name)
}

func TestRealGraphsHaveTheirPublishedCounts(t *testing.T) {
	for _, c := range []struct {
		name, columns string
		want          Stats
	}{
		{"fb15k-237", "", Stats{Entities: 14541, Relations: 237, Train: 272115, Valid: 17535, Test: 20466, UnseenEntities: 36, UnseenTriples: 37}},
		{"umls", "", Stats{Entities: 135, Relations: 46, Train: 5216, Valid: 652, Test: 661}},
		{"kinship", "relation,head,tail", Stats{Entities: 104, Relations: 25, Train: 8548, Valid: 1069, Test: 1069}},
		{"nations", "relation,head,tail", Stats{Entities: 14, Relations: 56, Train: 1619, Valid: 202, Test: 203}},
	} {
		dir := data(t, c.name)
		start := time.Now()
		g, err := Load(dir, Options{Columns: c.columns})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		took := time.Since(start)
		got := g.Stats()
		t.Logf("%s: %v; read in %v", c.name, got, took.Round(time.Millisecond))
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Sets that put the relation first are not read as if they did not.
func TestRealGraphsOfAnotherOrderAreNoticed(t *testing.T) {
	for _, name := range []string{"kinship", "nations"} {
		dir := data(t, name)
		if g, err := Load(dir, Options{}); err == nil && len(g.Warnings()) == 0 || err != nil && !strings.Contains(err.Error(), "relation,head,tail") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkLoadRealGraph(b *testing.B) {
	dir := data(b, "fb15k-237")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(dir, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
