package libsvm

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/data/lines"
)

func read(t testing.TB, text string, o Options) *Set {
	t.Helper()
	s, err := Read("test", strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
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

func TestExamplesAreReadAsTheyStand(t *testing.T) {
	got := read(t, "+1 3:1 11:0.5 14:-2e1\n-1\n1 1:1 0:7 # 2:2\n", Options{})
	want := &Set{
		Labels: []float32{1, 0, 1}, Starts: []int{0, 3, 3, 5},
		Features: []uint32{3, 11, 14, 0, 1}, Values: []float32{1, 0.5, -20, 7, 1}, Width: 15, Classes: []string{"-1", "1"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
}

func TestVariantsOfTheSameTextGiveTheSameExamples(t *testing.T) {
	const plain = "1 1:1 2:2\n0 3:1\n"
	want := read(t, plain, Options{})
	for name, text := range map[string]string{
		"no last line end":  "1 1:1 2:2\n0 3:1",
		"CR LF":             "1 1:1 2:2\r\n0 3:1\r\n",
		"byte order mark":   "\ufeff" + plain,
		"empty lines":       "\n \n1 1:1 2:2\n# a comment\n0 3:1\n\n",
		"tabs and spaces":   "1\t1:1  2:2 \n 0 3:1\n",
		"another order":     "1 2:2 1:1\n0 3:1\n",
		"other numbers":     "+1 1:1.0 02:2e0\n-0 3:1\n",
		"floats as labels":  "1.0 1:1 2:2\n0.0 3:1\n",
		"other classes":     "2 1:1 2:2\n1.5 3:1\n",
		"the other first":   "2 1:1 2:2\n-3 3:1\n",
		"a line's comments": "1 1:1 2:2 # 9:9\n0 3:1#\n",
	} {
		got, err := Read("test", strings.NewReader(text), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if classes := got.Classes; strings.Contains(name, "other ") && classes[1] == "2" {
			got.Classes = want.Classes
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestABadLineIsReportedWithFileLineAndReason(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no number":         {"1 1:1\nyes 2:1\n", []string{"test:2:", `label "yes" is not a finite number`}},
		"a third class":     {"1 1:1\n2 2:1\n1 1:1\n3 1:1\n", []string{"test:4:", `label "3" is the third one`, "(--target classes) or values"}},
		"both negatives":    {"1 1:1\n-1 1:1\n0 1:1\n", []string{"test:3:", "third"}},
		"infinite label":    {"inf 1:1\n", []string{"test:1:", `label "inf"`}},
		"no label":          {"1:1 2:1\n", []string{"test:1:", `label "1:1"`}},
		"no value":          {"1 2\n", []string{"test:1:", `"2" is not of the form index:value`}},
		"empty value":       {"1 2:\n", []string{`"2:" is not of the form`}},
		"empty index":       {"1 :2\n", []string{`":2" is not of the form`}},
		"a name":            {"1 age:2\n", []string{`index "age"`, "hashed"}},
		"query ids":         {"1 qid:3 1:1\n", []string{`index "qid"`}},
		"negative index":    {"1 -1:2\n", []string{`index "-1"`}},
		"huge index":        {"1 4294967295:2\n", []string{`index "4294967295"`}},
		"overflowing index": {"1 18446744073709551617:2\n", []string{`index "18446744073709551617"`}},
		"twice the same":    {"1 7:1 3:1 7:1\n", []string{"feature 7 occurs twice"}},
		"NaN":               {"1 1:nan\n", []string{`value "nan"`}},
		"infinite":          {"1 1:1e39\n", []string{`value "1e39"`}},
		"NUL":               {"1 1:1\x00\n", []string{"test:1:", "text file"}},
		"not UTF-8":         {"1 \xff:1\n", []string{"index \"\ufffd\""}},
		"old line ends":     {"1 1:1\r1 2:1\r", []string{"carriage return"}},
		"nothing":           {"\n# nothing\n", []string{"no examples"}},
		"too long":          {"1 1:1\n1 " + strings.Repeat(" ", maxLine), []string{"test:2:", "longer than"}},
	} {
		_, err := Read("test", strings.NewReader(c.text), Options{})
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

func TestLinesOfManyPairsAreRead(t *testing.T) {
	var b strings.Builder
	b.WriteString("1")
	const n = 40_000
	for i := range n {
		b.WriteString(" ")
		b.WriteString(strings.Repeat("0", i%3)) // leading zeros vary the length
		b.WriteString(itoa(i))
		b.WriteString(":1")
	}
	s := read(t, "0 1:1\n"+b.String()+"\n0 2:1\n", Options{})
	if _, fs, _ := s.Row(1); s.Len() != 3 || len(fs) != n || fs[n-1] != n-1 {
		t.Errorf("%d examples, the long one with %d features", s.Len(), len(fs))
	}
}

func itoa(i int) string {
	if i < 10 {
		return string(rune('0' + i))
	}
	return itoa(i/10) + string(rune('0'+i%10))
}

func TestFilesAreDecompressedByTheirName(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return p
	}
	const text = "1 1:1\n0 2:1\n"
	want := read(t, text, Options{})
	for _, p := range []string{write("a", text), write("a.gz", zipped(t, text)), write("b.gz", zipped(t, "1 1:")+zipped(t, "1\n0 2:1\n"))} {
		if got, err := Load(p, Options{}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", p, got, err)
		}
	}
	z := zipped(t, strings.Repeat(text, 100))
	damaged := []byte(z)
	damaged[len(z)-6] ^= 1
	for name, c := range map[string]struct{ text, want string }{
		"cut.gz":     {z[:len(z)-9], "ends early"},
		"trailer.gz": {z[:len(z)-3], "ends early"},
		"empty.gz":   {"", "ends early"},
		"damaged.gz": {string(damaged), "damaged"},
		"text.gz":    {text + text, "not gzip"},
		"zip.txt":    {z, "text file"},
	} {
		if _, err := Load(write(name, c.text), Options{}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names the file and says %q", name, err, c.want)
		}
	}
	if _, err := Load(filepath.Join(dir, "none"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestHashedFeaturesMayHaveNamesAndAddUpWhereTheyCollide(t *testing.T) {
	s := read(t, "1 age=39:1 city:Bonn:2\n0 age=39:1 1e3:0.5\n", Options{HashBits: 20})
	if s.Width != 1<<20 || s.Len() != 2 {
		t.Fatalf("%+v", s)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	_, a, _ := s.Row(0)
	_, b, _ := s.Row(1)
	common := 0
	for _, x := range a {
		for _, y := range b {
			if x == y {
				common++
			}
		}
	}
	if common != 1 {
		t.Errorf("features %v and %v have %d in common, want the one of age=39", a, b, common)
	}
	s = read(t, "1 a:1 b:2 c:4 d:8 e:16\n", Options{HashBits: 1})
	sum := float32(0)
	for _, v := range s.Values {
		sum += v
	}
	if s.Width != 2 || len(s.Features) > 2 || sum != 31 {
		t.Errorf("%+v, want at most two features with values that add up to 31", s)
	}
	for _, bits := range []int{-1, MaxHashBits + 1} {
		if _, err := Read("test", strings.NewReader("1 1:1"), Options{HashBits: bits}); err == nil {
			t.Errorf("%d bits were accepted", bits)
		}
	}
}

// The features that occur are found the same way where few of many do.
func TestUsedFeaturesAreCounted(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		for _, width := range []int{1, 100, 1 << 14, 1 << 31} {
			want, s := map[uint32]int32{}, &Set{}
			for range rng.IntN(2000) {
				f := uint32(rng.IntN(width))
				if rng.IntN(2) == 0 {
					f /= 1000
				}
				want[f]++
				s.Append(1, []uint32{f}, []float32{1})
			}
			s.Width = width
			features, counts := s.Used()
			if len(features) != len(want) || !slices.IsSorted(features) || s.Stats().Used != len(want) {
				t.Errorf("seed %d: of %d features, %d are used, want %d, in order", seed, width, len(features), len(want))
			}
			for i, f := range features {
				if counts[i] != want[f] {
					t.Errorf("seed %d: feature %d of %d occurs %d times, want %d", seed, f, width, counts[i], want[f])
				}
			}
		}
	}
}

func TestHashesSpreadOverAllFeatures(t *testing.T) {
	var count [16]int
	const n = 16_000
	for i := range n {
		count[hash([]byte("feature"+itoa(i)), 4)]++
	}
	for f, c := range count {
		if c < n/16*8/10 || c > n/16*12/10 {
			t.Errorf("feature %d got %d of %d names, want about a 16th", f, c, n)
		}
	}
}

func TestScanningAllocatesNothingOnceBuffersHaveGrown(t *testing.T) {
	line := "1 1:1 7:0.25 3:4\n"
	l, err := labelsOf(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newScanner(lines.New("test", strings.NewReader(strings.Repeat(line, 3000)), maxLine), Options{}, l)
	for range 10 {
		s.scan()
	}
	if n := testing.AllocsPerRun(2000, func() {
		if !s.scan() {
			t.Fatal(s.failure())
		}
	}); n > 0 {
		t.Errorf("an example allocates %v times", n)
	}
}

func TestClassesAreThoseOfTheExamplesToTrain(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"train.txt": "2 1:1\n1 2:1\n2 3:1\n", "test.txt": "2 1:1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s, err := LoadSplits(dir, Options{}, Share{Valid: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []*Set{s.Train, s.Valid, s.Test} {
		if !slices.Equal(set.Classes, []string{"1", "2"}) {
			t.Errorf("the classes are %q", set.Classes)
		}
	}
	if s.Test.Labels[0] != 1 || s.Train.Labels[0] != 0 || s.Valid.Labels[0] != 1 {
		t.Errorf("2 is not the positive class: %+v", s)
	}
	if w := s.Warnings(); len(w) != 2 || !strings.Contains(w[1], "the label 2") {
		t.Errorf("warnings: %q", w)
	}
	// Negative examples may be written 0 in one file and -1 in another.
	if s, err := Read("a.t", strings.NewReader("-1 1:1\n1 1:1\n0 1:1\n"), Options{Classes: []string{"0", "1"}}); err != nil || !slices.Equal(s.Labels, []float32{0, 1, 0}) {
		t.Errorf("%+v, %v", s, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "test.txt"), []byte("2 1:1\n3 1:1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSplits(dir, Options{}, Share{}); err == nil || !strings.Contains(err.Error(), `test.txt:2: label "3" is neither 1 nor 2`) {
		t.Errorf("another class to test: %v", err)
	}
	for _, bad := range [][]string{{"1", "1"}, {"a", "b"}, {"1", ""}, {"1"}} {
		if (Options{Classes: bad}).Check() == nil {
			t.Errorf("the classes %q are accepted", bad)
		}
	}
}

func TestLabelsAreClassesOrValues(t *testing.T) {
	three := "3 1:1\n10 1:1\n2 1:1\n10 1:1\n"
	for _, c := range []struct {
		text    string
		target  Target
		classes []string
		labels  []float32
	}{
		{"0.5 1:1\n0.7 1:1\n0.1 1:1\n", Auto, nil, []float32{0.5, 0.7, 0.1}},
		{"1 1:1\n2 1:1\n3 1:1\n2.5 1:1\n", Auto, nil, []float32{1, 2, 3, 2.5}},
		{"1 1:1\n2 1:1\n3 1:1\n2.5 1:1\n", ToClasses, []string{"1", "2", "2.5", "3"}, []float32{0, 1, 3, 2}},
		{"0.7 1:1\n0.5 1:1\n0.7 1:1\n", Auto, []string{"0.5", "0.7"}, []float32{1, 0, 1}},
		{three, ToClasses, []string{"2", "3", "10"}, []float32{1, 2, 0, 2}},
		{three, ToValues, nil, []float32{3, 10, 2, 10}},
		{"-1 1:1\n1 1:1\n", ToValues, nil, []float32{-1, 1}},
		{"7 1:1\n7 1:1\n", "", []string{"-1", "7"}, []float32{1, 1}},
	} {
		s, err := Read("test", strings.NewReader(c.text), Options{Target: c.target})
		if err != nil || !slices.Equal(s.Classes, c.classes) || !slices.Equal(s.Labels, c.labels) {
			t.Errorf("%q as %s: %+v, %v; want classes %q and labels %v", c.text, c.target, s, err, c.classes, c.labels)
		}
	}
	for name, c := range map[string]struct {
		text string
		o    Options
		want string
	}{
		"undecided":          {three, Options{}, `test:3: label "2" is the third one, and all are whole numbers: say whether they are classes (--target classes) or values (--target values)`},
		"large class":        {"1 1:1\n16777217 1:1\n16777219 1:1\n", Options{Target: ToClasses}, `test:2: label "16777217" is too large for a class`},
		"large, auto":        {"1 1:1\n16777217 1:1\n1 1:1\n", Options{}, `test:2: label "16777217" is too large for a class, want below 16777216: if labels are numbers to be predicted, say so (--target values)`},
		"large and alike":    {"16777217 1:1\n16777216 1:1\n", Options{}, `test:1: label "16777217" is too large for a class`},
		"no such target":     {three, Options{Target: "ranks"}, `target "ranks"`},
		"classes and values": {three, Options{Target: ToValues, Classes: []string{"1", "2"}}, "2 classes for the target values"},
		"unknown class":      {three, Options{Classes: []string{"2", "3", "4"}}, `test:2: label "10" is none of the 3 classes to train, 2 … 4`},
	} {
		if _, err := Read("test", strings.NewReader(c.text), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
	var many strings.Builder
	for i := range MaxClasses + 1 {
		fmt.Fprintf(&many, "%d 1:1\n", i)
	}
	if _, err := Read("test", strings.NewReader(many.String()), Options{Target: ToClasses}); err == nil || !strings.Contains(err.Error(), "test:4097: ") {
		t.Errorf("too many classes: %v", err)
	}
}

func TestAllSplitsHaveTheTargetOfTheExamplesToTrain(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("train.txt", "1.5 1:1\n2.5 1:1\n4 1:1\n")
	write("test.txt", "1 1:1\n2 1:1\n")
	s, err := LoadSplits(dir, Options{}, Share{Valid: 2})
	if err != nil || s.Test.Classes != nil || s.Valid.Classes != nil || !slices.Equal(s.Test.Labels, []float32{1, 2}) {
		t.Errorf("values to train: %+v, %v", s, err)
	}
	write("train.txt", "1 1:1\n2 1:1\n4 1:1\n")
	s, err = LoadSplits(dir, Options{Target: ToClasses}, Share{Valid: 2})
	if err != nil || !slices.Equal(s.Test.Classes, []string{"1", "2", "4"}) || !slices.Equal(s.Valid.Classes, s.Test.Classes) {
		t.Errorf("classes to train: %+v, %v", s, err)
	}
}

// FuzzRead holds that whatever is read can be written and read again alike.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"1 1:1 2:0.5\n-1\n", "\ufeff0 3:1e-3\r\n", "+1 9:9 1:1 # x", "1 a:1 b:2", "1 1:0x1p-2", "1 1:1_0", "1 0:-0"} {
		f.Add([]byte(s), uint8(0))
		f.Add([]byte(s), uint8(7))
	}
	f.Fuzz(func(t *testing.T, text []byte, bits uint8) {
		s, err := Read("fuzz", bytes.NewReader(text), Options{HashBits: int(bits % 32)})
		if err != nil {
			if s != nil {
				t.Fatal("examples and an error")
			}
			return
		}
		if err := s.Check(); err != nil {
			t.Fatalf("%q is read as %+v: %v", text, s, err)
		}
		var b bytes.Buffer
		if err := s.Encode(&b); err != nil {
			t.Fatal(err)
		}
		again, err := Read("again", &b, Options{})
		if err != nil {
			t.Fatalf("%q is read, but written so that: %v", text, err)
		}
		again.Width = s.Width // the largest feature, or of the hash
		if len(s.Features) == 0 {
			again.Features, again.Values = s.Features, s.Values // nil or empty
		}
		if !reflect.DeepEqual(s, again) {
			t.Fatalf("%q is read as %+v, and again as %+v", text, s, again)
		}
	})
}

// data returns the path of a real data set.
func data(t testing.TB, name string) string {
	root := os.Getenv("GODWIT_DATA")
	if root == "" {
		t.Skip("GODWIT_DATA is not set: it names a folder with real data sets, such as linear/a9a")
	}
	return filepath.Join(root, "linear", filepath.FromSlash(name))
}

func TestRealSetsHaveTheirPublishedCounts(t *testing.T) {
	for name, want := range map[string]Stats{
		"a9a/a9a.gz":                        {Examples: 32560, Positive: 7841, Width: 123, Classes: 2, Used: 122, NonZeros: 451578},
		"a9a/a9a.t.gz":                      {Examples: 16281, Positive: 3846, Width: 123, Classes: 2, Used: 122, NonZeros: 225731},
		"frappe/frappe.validation.libfm.gz": {Examples: 57722},
		"frappe/frappe.test.libfm.gz":       {Examples: 28860},
	} {
		s, err := Load(data(t, name), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := s.Stats()
		t.Logf("%s: %v", name, got)
		if got.Examples != want.Examples || want.Width > 0 && got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	s, err := Generate(Spec{Examples: 10_000, Features: 1000, PerExample: 20, Relevant: 10, Classes: 2, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	var text bytes.Buffer
	if err := s.Encode(&text); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := Read("bench", bytes.NewReader(text.Bytes()), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
