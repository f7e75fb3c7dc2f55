package triples

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// graphOfTexts makes a graph of texts of its splits.
func graphOfTexts(t *testing.T, train, valid, test string) *Graph {
	t.Helper()
	dir := t.TempDir()
	for i, text := range []string{train, valid, test} {
		writeFile(t, dir, splitNames[i]+".txt", text)
	}
	g, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestWarningsNameWhatIsThere(t *testing.T) {
	many := strings.Repeat("a\tr\tb\nb\tr\tc\n", manyFacts)
	for _, c := range []struct {
		what, train, valid, test string
		want                     []string
	}{
		{"nothing", many, "a\tr\tc\n", "c\tr\ta\n", nil},
		{"a fact to train", many, "a\tr\tb\n", "b\tr\tc\nb\tr\tc\na\tr\tc\n", []string{"1 of 1 facts of valid are facts to train", "2 of 3 facts of test are facts to train"}},
		{"a new entity", many, "", "a\tr\tz\n", []string{"1 of 1 facts of test have an entity"}},
		{"a new relation", many, "a\tq\tb\n", "", []string{"1 of 1 facts of valid have an entity or a relation"}},
		{"a first line of its own", "x\ty\tz\n" + many, "", "", []string{`the first fact of train, "x" "y" "z"`}},
		{"whose relation is used", "x\tr\tz\n" + many, "", "", nil},
		{"whose entity is used", "x\ty\ta\n" + many, "", "", nil},
		{"of few", "x\ty\tz\na\tr\tb\n", "", "", nil},
	} {
		got := graphOfTexts(t, c.train, c.valid, c.test).Warnings()
		if !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: warnings %q, want %q", c.what, got, c.want)
		}
	}
}

func TestTitlesOfColumnsAreRefused(t *testing.T) {
	for _, c := range []struct {
		what, train, test, want string
	}{
		{"titles", "Head\tRelation\tTail\na\tr\tb\n", "b\tr\ta\n", "train.txt:1"},
		{"in one file", "a\tr\tb\n", "h\tr_\tt\nb\tr\ta\n", ""},
		{"in the test", "a\tr\tb\n", "subject\tpredicate\tobject\nb\tr\ta\n", "test.txt:1"},
		{"in both, of any words", "x\ty\tz\na\tr\tb\n", "x\ty\tz\nb\tr\ta\n", "train.txt:1"},
		{"words that are entities, too", "head\trelation\ttail\nhead\tr\tb\n", "b\tr\ta\n", ""},
	} {
		dir := t.TempDir()
		writeFile(t, dir, "train.txt", c.train)
		writeFile(t, dir, "valid.txt", "")
		writeFile(t, dir, "test.txt", c.test)
		_, err := Load(dir)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "remove this line")) {
			t.Errorf("%s: %v, want an error with %q", c.what, err, c.want)
		}
	}
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
