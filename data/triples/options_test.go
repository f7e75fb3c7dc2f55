package triples

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestFilesOfUsersAreRead(t *testing.T) {
	want := [][3]string{{"New York", "lies in", "USA"}, {"a, b", "has \"x\"", "ü"}}
	for name, c := range map[string]struct {
		text string
		o    Options
	}{
		"facts.txt":    {"New York\tlies in\tUSA\na, b\thas \"x\"\tü\n", Options{}},
		"facts.tsv":    {"New York\tlies in\tUSA\r\na, b\thas \"x\"\tü", Options{}},
		"facts.csv":    {"New York,lies in,USA\n\"a, b\",\"has \"\"x\"\"\",\"ü\"\n", Options{}},
		"titled.csv":   {"subject,predicate,object\nNew York,lies in,USA\n\"a, b\",\"has \"\"x\"\"\",ü\n", Options{}},
		"named.csv":    {"anything,goes,here\nNew York,lies in,USA\n\"a, b\",\"has \"\"x\"\"\",ü\n", Options{Header: HeaderYes}},
		"order.tsv":    {"lies in\tNew York\tUSA\nhas \"x\"\ta, b\tü\n", Options{Columns: "relation,head,tail"}},
		"weighted.tsv": {"1\tNew York\tlies in\tUSA\t0.5\n2\ta, b\thas \"x\"\tü\t0.7\n", Options{Columns: "-,head,relation,tail,-"}},
	} {
		dir := t.TempDir()
		writeFile(t, dir, name, c.text)
		g, err := Load(filepath.Join(dir, name), c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got [][3]string
		for _, x := range g.Train {
			got = append(got, [3]string{g.Entities[x.S], g.Relations[x.R], g.Entities[x.O]})
		}
		if !slices.Equal(got, want) || len(g.Entities) != 4 {
			t.Errorf("%s: %q of %q", name, got, g.Entities)
		}
	}
}

func TestBadFieldsOfCSVAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"a,r,b\na,\"r,b\n":      "facts.csv:2: a quote",
		"a,r,b\na,\"r\"s,b\n":   "facts.csv:2: a quote",
		"a,r,b\na,\"r\"s\",b\n": "facts.csv:2: a quote",
		"a,r,b\na,r\"s,b\n":     "facts.csv:2: a quote",
		"a,r,b\na,\"\",b\n":     "facts.csv:2: the relation, field 2, is empty",
		"a,r,b,0.5\n":           "facts.csv:1: 4 fields separated by commas, want 3: head, relation, tail; if the others are not needed",
	} {
		dir := t.TempDir()
		writeFile(t, dir, "facts.csv", text)
		if _, err := Load(filepath.Join(dir, "facts.csv"), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A chain of facts in each order of the columns.
func TestColumnsInAnotherOrderAreNoticed(t *testing.T) {
	for order, line := range map[string]string{
		"":                   "town %[1]d\t%[3]s\ttown %[2]d\n",
		"relation,head,tail": "%[3]s\ttown %[1]d\ttown %[2]d\n",
		"head,tail,relation": "town %[1]d\ttown %[2]d\t%[3]s\n",
	} {
		var b strings.Builder
		for i := range 200 {
			fmt.Fprintf(&b, line, i%40, (i*7+1)%40, []string{"knows", "likes"}[i%2])
		}
		dir := t.TempDir()
		writeFile(t, dir, "train.txt", b.String())
		_, err := Load(dir, Options{})
		if order == "" && err != nil || order != "" && (err == nil || !strings.Contains(err.Error(), order)) {
			t.Errorf("columns %q: %v", order, err)
		}
		if g, err := Load(dir, Options{Columns: order}); err != nil || len(g.Relations) != 2 || len(g.Entities) != 40 {
			t.Errorf("columns %q, as said: %v", order, err)
		}
		if _, err := Load(dir, Options{Columns: "head,relation,tail"}); err != nil {
			t.Errorf("columns %q, said to be others: %v", order, err) // whoever says so knows
		}
	}
	// Users and things, whose names tell nothing.
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "%s\tuser %d\tthing %d\n", []string{"bought", "saw"}[i%2], i%70, i*i%30)
	}
	dir := t.TempDir()
	writeFile(t, dir, "train.txt", b.String())
	if g, err := Load(dir, Options{}); err != nil || !slices.ContainsFunc(g.Warnings(), func(w string) bool { return strings.Contains(w, "70 different relations, and 2 heads") }) {
		t.Errorf("many relations: %v", err)
	}
}

func TestOneFileIsSplitByLot(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "e%d\tr%d\te%d\n", i%50, i%3, i*i%47)
	}
	for i := range 100 { // which are never held out
		fmt.Fprintf(&b, "lonely %d\tr0\te1\n", i)
	}
	dir := t.TempDir()
	writeFile(t, dir, "facts.tsv", b.String())
	path := filepath.Join(dir, "facts.tsv")
	o := Options{Split: []float64{0.8, 0.1, 0.1}, Seed: 5}
	g, err := Load(path, o)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Load(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	distinct := map[Triple]bool{}
	for _, x := range all.Train {
		distinct[x] = true
	}
	n := len(distinct)
	st := g.Stats()
	if st.Valid != (n+5)/10 || st.Test != (n+5)/10 || st.Train+st.Valid+st.Test != n || st.Leaked+st.Duplicates+st.UnseenTriples > 0 {
		t.Errorf("%d different facts are split into %v", n, st)
	}
	if g.repeated != len(all.Train)-n {
		t.Errorf("%d facts are said to be there before, want %d", g.repeated, len(all.Train)-n)
	}
	again, err := Load(path, o)
	if err != nil || !reflect.DeepEqual(g, again) {
		t.Errorf("the same seed splits otherwise: %v", err)
	}
	o.Seed++
	if other, err := Load(path, o); err != nil || slices.Equal(other.Test, g.Test) {
		t.Errorf("another seed splits likewise: %v", err)
	}
	// What has a file is not split.
	folder := t.TempDir()
	writeFile(t, folder, "train.tsv", b.String())
	writeFile(t, folder, "test.csv", "e1,r1,e1\n")
	if g, err := Load(folder, o); err != nil || len(g.Train) != 1100 || len(g.Test) != 1 || len(g.Valid) != 0 {
		t.Errorf("a folder with a test: %v", err)
	}
	for _, bad := range [][]float64{{0.5, 0.1, 0.1}, {0, 0.5, 0.5}, {1.2, -0.1, -0.1}, {0.5, 0.5}, {math.NaN(), 0, 1}} {
		if _, err := Load(path, Options{Split: bad}); err == nil || !strings.Contains(err.Error(), "Split") {
			t.Errorf("shares %v: %v", bad, err)
		}
	}
}

func TestBytesThatAreNoTextAreReplacedAndCounted(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "facts.txt", "caf\xe9\tr\tb\nb\tr\tcaf\xe9\nb\tr\tc\n")
	g, err := Load(filepath.Join(dir, "facts.txt"), Options{})
	if err != nil || !slices.Equal(g.Entities, []string{"caf\ufffd", "b", "c"}) || !strings.Contains(g.Warnings()[0], "2 lines are not valid UTF-8") {
		t.Errorf("%+v, %v", g, err)
	}
	h, r, o, err := Fields([]byte("caf\xe9 r \xff"))
	if string(h) != "caf\ufffd" || string(r) != "r" || string(o) != "\ufffd" || err != nil {
		t.Errorf("a question for %q, %q, %q, %v", h, r, o, err)
	}
}

func TestFactsAreFoundByTheirNames(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "facts.csv", "b,r,a\na,r,z\nb,q,a\n")
	facts, others, err := LoadFacts(filepath.Join(dir, "facts.csv"), NewNames([]string{"a", "b"}, []string{"q", "r"}), Options{Split: []float64{0.5, 0, 0.5}})
	if err != nil || others != 1 || !slices.Equal(facts, []Triple{{1, 1, 0}, {1, 0, 0}}) {
		t.Errorf("%v, %d, %v", facts, others, err)
	}
}

// FuzzCSV holds that a line of quoted fields is split into what it was made of.
func FuzzCSV(f *testing.F) {
	f.Add("a", "r", "b", "x,\"y\",z")
	f.Add("a,\"", "\"\"", ",", "\"")
	f.Fuzz(func(t *testing.T, a, r, b, line string) {
		p := splitter{layout: layout{columns: 3, at: [3]int{0, 1, 2}}, by: comma}
		_, _ = p.split([]byte(line)) // is refused or read
		quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
		got, err := p.split([]byte(quote(a) + "," + quote(r) + "," + quote(b)))
		if strings.ContainsAny(a+r+b, "\x00\r") || strings.Trim(a, " ") == "" || strings.Trim(r, " ") == "" || strings.Trim(b, " ") == "" {
			return
		}
		if err != nil || string(got[0]) != a || string(got[1]) != r || string(got[2]) != b {
			t.Errorf("%q, %q, %q became %q, %v", a, r, b, got, err)
		}
	})
}
