package wordvec

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func random(n, dim int) *Vectors {
	r := rand.New(rand.NewPCG(uint64(n), uint64(dim)))
	var names []string
	var vals []float32
	for i := range n {
		names = append(names, fmt.Sprintf("wörd%d", i))
		for range dim {
			vals = append(vals, float32(r.NormFloat64()))
		}
	}
	v, err := New(names, dim, vals)
	if err != nil {
		panic(err)
	}
	return v
}

// A first line of a name and one number is a vector.
func TestVectorsOfOneFloatHaveNoFirstLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one.vec")
	if err := os.WriteFile(path, []byte("a 3\nb 4\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if v, err := Read(path); err != nil || fmt.Sprint(v.Names, v.Vals) != "[a b] [3 4]" {
		t.Errorf("%+v, %v", v, err)
	}
}

// Names of an array's rows are text, which some programs mark.
func TestMarkedNamesOfAnArrayAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npy")
	v, err := New([]string{"a", "b"}, 1, []float32{3, 4})
	if err != nil {
		t.Fatal(err)
	}
	save(t, path, v)
	if err := os.WriteFile(namesOf(path), []byte("\ufeffa\r\nb\r\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if v, err := Read(path); err != nil || fmt.Sprintf("%q", v.Names) != `["a" "b"]` {
		t.Errorf("%+v, %v", v, err)
	}
}

func save(t *testing.T, path string, v *Vectors) {
	t.Helper()
	w, err := Create(path, len(v.Names), v.Dim)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range v.Names {
		if err := w.Write(n, v.Vector(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsWrittenIsReadBackBitForBit(t *testing.T) {
	dir := t.TempDir()
	v := random(500, 7)
	v.Vals[3], v.Vals[4] = float32(math.Inf(1)), -1e-40
	for _, ending := range Endings() {
		path := filepath.Join(dir, "x"+ending[1:]+ending)
		save(t, path, v)
		got, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if got.Dim != v.Dim || !slices.Equal(got.Names, v.Names) || !slices.Equal(got.Vals, v.Vals) {
			t.Errorf("%s: other vectors were read", ending)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 4 { // .npy has its names beside it
		t.Errorf("the folder has %v, %v", left, err)
	}
}

func TestFilesOfOtherProgramsAreRead(t *testing.T) {
	for name, text := range map[string]string{
		"word2vec.txt": "2 3\n</s> 1 2 3 \nthe -0.5 0.25 1e-3 \n",
		"glove.vec":    "</s> 1 2 3\r\nthe -0.5 0.25 0.001",
		"marked.txt":   "\ufeff2 3\r\n</s> 1 2 3\r\nthe -0.5 0.25 1e-3\r\n",
		"marked.vec":   "\ufeff</s> 1 2 3\nthe -0.5 0.25 0.001\n",
		"gensim.bin":   "2 3\n</s> \x00\x00\x80?\x00\x00\x00@\x00\x00@@the \x00\x00\x00\xbf\x00\x00\x80>o\x12\x83:",
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		v, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := []float32{1, 2, 3, -0.5, 0.25, 0.001}; fmt.Sprint(v.Names) != "[</s> the]" || !slices.Equal(v.Vals, want) {
			t.Errorf("%s: %v %v", name, v.Names, v.Vals)
		}
	}
}

func TestBadFilesAreNamed(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, text, want string }{
		{"a.doc", "", ".npy"},
		{"a.txt", "", "no vectors"},
		{"b.txt", "2 2\na 1 2\n", "1 vectors, the first line says 2"},
		{"c.txt", "2 2\na 1 2\nb 1\n", "line 3: 2 fields"},
		{"f.txt", "1 2\na 1 2\nb 1 2\n", "2 vectors, the first line says 1"},
		{"d.txt", "a 1 x\n", `line 1: "x" is no number`},
		{"e.txt", "a 1 2\n\xff 1 2\n", "line 2"},
		{"a.bin", "", "first line"},
		{"b.bin", "ELF", "first line"},
		{"c.bin", "2 1\na \x00\x00\x80?\n", "vector 1: the file ends here"},
		{"d.bin", "9999999999 9\na \x00\x00\x80?\n", "vector 0"},
		{"e.bin", "1 1\n" + strings.Repeat("x", maxName+2), "another format"},
		{"f.bin", "1 2000000\n", "first line"},
		{"g.bin", "1 1\na \x00\x00\x80?\nb \x00\x00\x80?\n", "more than the 1 vectors"},
		{"a.npy", "no", "npy"},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want one that mentions %q", c.name, err, c.want)
		}
	}
	save(t, filepath.Join(dir, "x.npy"), random(3, 2))
	if err := os.WriteFile(filepath.Join(dir, "x.txt"), []byte("a\nb\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(filepath.Join(dir, "x.npy")); err == nil || !strings.Contains(err.Error(), "2 names for 3 rows") {
		t.Errorf("error %v, want one that says how many names are there", err)
	}
	if _, err := Read(filepath.Join(dir, "missing.bin")); err == nil {
		t.Error("a file was read that is not there")
	}
}

func TestAWriterThatFailsLeavesNothing(t *testing.T) {
	for _, ending := range Endings() {
		dir := t.TempDir()
		for _, c := range []struct {
			name string
			n    int
			bad  bool
		}{{"", 2, true}, {"a\nb", 2, true}, {strings.Repeat("x", maxName+1), 2, true}, {"a b", 2, ending != ".npy"}, {"ok", 3, true}, {"ok", 2, false}} {
			w, err := Create(filepath.Join(dir, "x"+ending), 1, 2)
			if err != nil {
				t.Fatal(err)
			}
			werr := w.Write(c.name, make([]float32, c.n))
			if (werr != nil) != c.bad {
				t.Errorf("%s: writing %.10q with %d floats: %v", ending, c.name, c.n, werr)
			}
			if c.name == "ok" && !c.bad {
				if err := w.Write("more", make([]float32, 2)); err == nil {
					t.Errorf("%s: more vectors than were said were written", ending)
				}
			}
			if err := w.Close(); (err == nil) != (werr == nil && c.name != "ok") {
				t.Errorf("%s: closing after %v: %v", ending, werr, err)
			}
			if c.name == "a b" {
				_ = os.Remove(filepath.Join(dir, "x.npy"))
				_ = os.Remove(filepath.Join(dir, "x.txt"))
			}
		}
		w, err := Create(filepath.Join(dir, "x"+ending), 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write("one", make([]float32, 2)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err == nil {
			t.Error("a file with vectors missing was finished")
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: %v are left, %v", ending, left, err)
		}
	}
	if _, err := Create(filepath.Join(t.TempDir(), "no", "x.npy"), 1, 1); err == nil {
		t.Error("a file was begun in a folder that is not there")
	}
	if _, err := Create("x.csv", 1, 1); err == nil || !strings.Contains(err.Error(), ".csv") {
		t.Errorf("error %v, want one that names the ending", err)
	}
}

func TestNearestAreThoseWithTheGreatestCosine(t *testing.T) {
	v := random(300, 5)
	v.Vals[10*5] = float32(math.NaN())
	Normalize(v.Vals, v.Dim)
	type pair struct {
		id  int
		cos float64
	}
	q := v.Vector(7)
	var all []pair
	for i := range v.Names {
		dot := 0.0
		for j, x := range v.Vector(i) {
			dot += float64(x) * float64(q[j])
		}
		if i != 7 && i != 9 {
			all = append(all, pair{i, dot})
		}
	}
	slices.SortFunc(all, func(a, b pair) int {
		if a.cos > b.cos {
			return -1
		}
		return 1
	})
	for _, k := range []int{0, 1, 10, 1000} {
		got := v.Nearest(q, k, 7, 9)
		if len(got) != min(k, 298) {
			t.Fatalf("%d of %d nearest", len(got), k)
		}
		for i, n := range got {
			if math.Abs(n.Cosine-all[i].cos) > 1e-6 {
				t.Errorf("neighbour %d is %v, want %v", i, n, all[i])
			}
		}
	}
}

func TestAnalogiesOfAGridAreAnswered(t *testing.T) {
	// Vectors that are sums, and some others that are not.
	other := random(60, 20)
	names, vals := []string{}, []float32{}
	for s := range 4 {
		for f := range 3 {
			names = append(names, fmt.Sprint("s", s, "f", f))
			for j := range 20 {
				vals = append(vals, other.Vector(s)[j]+other.Vector(10 + f)[j])
			}
		}
	}
	for i := 20; i < 60; i++ {
		names = append(names, other.Names[i])
		vals = append(vals, other.Vector(i)...)
	}
	v, err := New(names, 20, vals)
	if err != nil {
		t.Fatal(err)
	}
	Normalize(v.Vals, v.Dim)
	text := ": gram1-forms\ns0f0 s0f1 s1f0 s1f1\nS2F2 s2f0 s3f2 s3f0\n\n: capitals\ns0f0 s0f1 s1f0 unknown\n" +
		": wrong\ns0f0 s0f1 s1f0 wörd30\n"
	q, err := parseQuestions(strings.NewReader(text), true)
	if err != nil {
		t.Fatal(err)
	}
	known := q.Known(func(w string) (int32, bool) { id, ok := v.ID(w); return int32(id), ok }, len(v.Names))
	right := make([]int64, len(q.Sections))
	Answer(v.Vals, v.Dim, known, right)
	s := q.Score(known, right)
	for _, c := range []struct {
		which func(SectionScore) bool
		want  SectionScore
	}{
		{All, SectionScore{Name: "x", Right: 2, Known: 3, Asked: 4}},
		{Syntactic, SectionScore{Name: "x", Right: 2, Known: 2, Asked: 2}},
		{Semantic, SectionScore{Name: "x", Right: 0, Known: 1, Asked: 2}},
	} {
		if got := s.Sum("x", c.which); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
	if some := q.Known(func(w string) (int32, bool) { id, ok := v.ID(w); return int32(id), ok }, 5); len(some) != 1 {
		t.Errorf("%d questions of the first 5 vectors, want 1", len(some))
	}
	if a := v.Analogy(0, 1, 3, 1); len(a) != 1 || a[0].Name != "s1f1" {
		t.Errorf("s0f0 is to s0f1 as s1f0 is to %v, want s1f1", a)
	}
}

func TestAnswersDoNotDependOnTheTiles(t *testing.T) {
	v := random(2500, 8)
	Normalize(v.Vals, v.Dim)
	r := rand.New(rand.NewPCG(1, 2))
	var qs []Known
	want := make([]int64, 3)
	for i := range 300 {
		k := Known{int32(r.IntN(2500)), int32(r.IntN(2500)), int32(r.IntN(2500)), int32(r.IntN(2500)), i % 3}
		best := v.Analogy(int(k.A), int(k.B), int(k.C), 1)[0]
		if i%2 == 0 {
			id, _ := v.ID(best.Name)
			k.D = int32(id)
			want[k.Section]++
		}
		qs = append(qs, k)
	}
	got := make([]int64, 3)
	Answer(v.Vals, v.Dim, qs, got)
	if !slices.Equal(got, want) {
		t.Errorf("%v right answers, want %v", got, want)
	}
}

func TestBadQuestionsAreNamed(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "without a question"},
		{": only\n: names\n", "line 3"},
		{": x\na b c\n", "line 2: 3 words"},
		{"a b c d\n\xff b c d\n", "line 2"},
		{"a b c d\n" + strings.Repeat("x", 1<<17), "line 2"},
	} {
		if _, err := parseQuestions(strings.NewReader(c.text), false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q: error %v, want one that mentions %q", c.text, err, c.want)
		}
	}
	if _, err := ReadQuestions(filepath.Join(t.TempDir(), "none"), false); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("error %v, want one that names the file", err)
	}
}

func TestRealQuestionsAreRead(t *testing.T) {
	dir := os.Getenv("GODWIT_DATA")
	if dir == "" {
		t.Skip("GODWIT_DATA is not set: it names a folder with text/questions-words.txt")
	}
	q, err := ReadQuestions(filepath.Join(dir, "text", "questions-words.txt"), true)
	if err != nil {
		t.Fatal(err)
	}
	n, syntactic := 0, 0
	for i := range q.Sections {
		n += len(q.Sections[i].Questions)
		if q.Sections[i].Syntactic() {
			syntactic++
		}
	}
	if len(q.Sections) != 14 || n != 19544 || syntactic != 9 {
		t.Errorf("%d sections, %d syntactic, %d questions, want 14, 9, 19544", len(q.Sections), syntactic, n)
	}
}

// FuzzRead checks that files that are no vectors are refused without harm.
func FuzzRead(f *testing.F) {
	f.Add([]byte("2 3\n</s> 1 2 3 \nthe -0.5 0.25 1e-3 \n"))
	f.Add([]byte("1 1\na \x00\x00\x80?\n"))
	f.Add([]byte("9999999999999 1000000\n"))
	f.Add([]byte(": x\na b c d\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, read := range []func(*bufio.Reader) (*Vectors, error){readText, readBinary} {
			v, err := read(bufio.NewReader(strings.NewReader(string(data))))
			if err == nil && len(v.Vals) != len(v.Names)*v.Dim {
				t.Fatalf("%d vectors of %d have %d floats", len(v.Names), v.Dim, len(v.Vals))
			}
		}
		if q, err := parseQuestions(strings.NewReader(string(data)), true); err == nil && len(q.Sections) == 0 {
			t.Fatal("questions without a section")
		}
	})
}

// FuzzQuestions checks that what is read, written again, is read alike.
func FuzzQuestions(f *testing.F) {
	for _, s := range []string{": capitals\nAthens Greece Oslo Norway\n", "\ufeffa b c d\r\n\n:gram1\nA B C D", "a b c", ":", "\xff"} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, lower bool) {
		q, err := parseQuestions(bytes.NewReader(text), lower)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				t.Errorf("the error %v names no line", err)
			}
			return
		}
		var b strings.Builder
		for _, s := range q.Sections {
			fmt.Fprintf(&b, ": %s\n", s.Name)
			for _, words := range s.Questions {
				fmt.Fprintln(&b, strings.Join(words[:], " "))
			}
		}
		if strings.Contains(b.String(), "\n:") != (len(q.Sections) > 1) || strings.Contains(b.String(), "\n\ufeff") {
			return // a word that a line cannot begin with
		}
		again, err := parseQuestions(strings.NewReader(b.String()), lower)
		if err != nil || !reflect.DeepEqual(q, again) {
			t.Errorf("read again: %v, %q, want %q", err, again, q)
		}
	})
}
