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
	g, err := Load(dir, Options{})
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
		if c.valid+c.test == "" {
			c.want = append([]string{"no fact is held out"}, c.want...)
		}
		if !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: warnings %q, want %q", c.what, got, c.want)
		}
	}
}

func TestHeadersAreNoFacts(t *testing.T) {
	for _, c := range []struct {
		what, header, train, test string
		want                      string // of an error; empty: none
		facts                     int
		warned                    int
	}{
		{"titles", "", "Head\tRelation\tTail\na\tr\tb\n", "b\tr\ta\n", "", 2, 1},
		{"no titles", "", "a\tr\tb\n", "h\tr_\tt\nb\tr\ta\n", "", 3, 0},
		{"in both", "auto", "s\tp\to\na\tr\tb\n", "s\tp\to\nb\tr\ta\n", "", 2, 2},
		{"in both, of any words", "", "x\ty\tz\na\tr\tb\n", "x\ty\tz\nb\tr\ta\n", "train.txt:1: \"x\"", 0, 0},
		{"said to be", "yes", "x\ty\tz\na\tr\tb\n", "x\ty\nb\tr\ta\n", "", 2, 0},
		{"said to be none", "no", "head\trelation\ttail\na\tr\tb\n", "b\tr\ta\n", "", 3, 0},
		{"words that are entities, too", "", "head\trelation\ttail\nhead\tr\tb\n", "b\tr\ta\n", "", 3, 0},
	} {
		dir := t.TempDir()
		writeFile(t, dir, "train.txt", c.train)
		writeFile(t, dir, "test.txt", c.test)
		g, err := Load(dir, Options{Header: c.header})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want an error with %q", c.what, err, c.want)
			}
			continue
		}
		if err != nil || len(g.Train)+len(g.Test) != c.facts || len(g.headers) != c.warned {
			t.Errorf("%s: %+v, %v, want %d facts and %d headers", c.what, g, err, c.facts, c.warned)
		}
	}
	if _, err := Load(t.TempDir(), Options{Header: "perhaps"}); err == nil || !strings.Contains(err.Error(), "perhaps") {
		t.Errorf("a header of perhaps: %v", err)
	}
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
