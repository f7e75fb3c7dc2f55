package ratings

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/data/lines"
)

// folder writes files by name and returns their folder.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if strings.HasSuffix(name, ".gz") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			if _, err := z.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			text = b.String()
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAHeadingMayBeTabbed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tsv")
	if err := os.WriteFile(path, []byte("user\titem\trating\na\tb\t3\nc\tb\t4\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if s, err := Load(path, Options{}); err != nil || len(s.Train) != 2 || s.Rows != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestAllFormatsOfOneMatrixAreReadAlike(t *testing.T) {
	want := []Rating{{0, 0, 4}, {0, 1, 3.5}, {1, 0, 1}}
	for name, text := range map[string]string{
		"x.data":    "7\t20\t4\t881250949\n7\t3\t3.5\t0\n1\t20\t1\t881250949\n",
		"x.base.gz": "7\t20\t4\t881250949\n7\t3\t3.5\t0\n1\t20\t1\t881250949",
		"x.test":    "7\t20\t4\r\n7\t3\t3.5\r\n\r\n1\t20\t1\r\n",
		"x.tsv":     "\ufeff7\t20\t4\n7\t3\t3.5\n1\t20\t1\n",
		"x.csv":     "userId,movieId,rating,timestamp\n7,20,4.0,1112486027\n7,3,3.5,1112484676\n1,20,1.0,1112484819\n",
		"x.csv.gz":  "7,20,4.0\n7,3,3.5\n1,20,1.0\n",
		"y.csv":     "7,20, 4.0, 1112486027\n7,3, 3.5, 1112484676 \n1,20, 1.0, 1112484819\n",
		"x.dat":     "7::20::4::978300760\n7::3::3.5::978302109\n1::20::1::978301968\n",
	} {
		s, err := Load(filepath.Join(folder(t, map[string]string{name: text}), name), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(s.Train, want) || len(s.Test) != 0 || s.Rows != 2 || s.Cols != 2 {
			t.Errorf("%s: %+v", name, s)
		}
		if s.RowName(0) != "7" || s.RowName(1) != "1" || s.ColName(0) != "20" || s.ColName(1) != "3" {
			t.Errorf("%s: rows %v, columns %v", name, s.RowNames, s.ColNames)
		}
	}
}

const matrix = `%%MatrixMarket matrix coordinate real general
% a comment

3 4 3
1 2 4
 3  1	-0.5
% another one
3 4 1e2
`

func TestAMatrixInCoordinateFormatKeepsItsNumbers(t *testing.T) {
	for _, text := range []string{matrix, strings.ReplaceAll(matrix, "real", "Integer"), strings.TrimSuffix(matrix, "\n"), strings.ReplaceAll(matrix, "\n", "\r\n")} {
		s, err := Load(filepath.Join(folder(t, map[string]string{"m.mtx": text}), "m.mtx"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := &Set{Rows: 3, Cols: 4, Train: []Rating{{0, 1, 4}, {2, 0, -0.5}, {2, 3, 100}}}
		if !reflect.DeepEqual(s, want) {
			t.Errorf("got %+v, want %+v", s, want)
		}
		if s.RowName(2) != "3" {
			t.Errorf("the third row is called %q", s.RowName(2))
		}
	}
}

func TestAFolderHoldsSplitsOrPartsOrOneFile(t *testing.T) {
	const a, b = "1\t1\t5\n", "1\t1\t4\n2\t1\t3\n"
	for name, c := range map[string]struct {
		files map[string]string
		split string
	}{
		"a split":       {map[string]string{"u1.base.gz": a, "u1.test": b, "u2.base": b, "u.data": b}, "u1"},
		"train, test":   {map[string]string{"train.tsv": a, "test.tsv.gz": b}, ""},
		"two endings":   {map[string]string{"train.tsv": a, "test.csv": strings.ReplaceAll(b, "\t", ",")}, ""},
		"coordinate":    {map[string]string{"train.mmc": "%%MatrixMarket matrix coordinate real general\n2 1 1\n1 1 5\n", "test.mtx": "%%MatrixMarket matrix coordinate real general\n2 1 2\n1 1 4\n2 1 3\n"}, ""},
		"other strings": {map[string]string{"ub.base": a, "ub.test": b, "README": "?"}, "ub"},
	} {
		s, err := Load(folder(t, c.files), Options{Split: c.split, Test: 0.5})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if s.Rows != 2 || s.Cols != 1 || !reflect.DeepEqual(s.Train, []Rating{{0, 0, 5}}) || !reflect.DeepEqual(s.Test, []Rating{{0, 0, 4}, {1, 0, 3}}) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	s, err := Load(folder(t, map[string]string{"u.data": "1\t1\t5\n1\t2\t4\n2\t1\t3\n2\t2\t1\n"}), Options{Test: 0.5})
	if err != nil || len(s.Train) != 2 || len(s.Test) != 2 || s.Rows != 2 || s.Cols != 2 {
		t.Errorf("a single file, half of it to test: %+v, %v", s, err)
	}
}

func TestBytesThatAreNoTextAreReplacedAndCounted(t *testing.T) {
	dir := folder(t, map[string]string{"train.csv": "caf\xe9,film,5\nann,caf\xe9,3\nann,film,1\n", "test.csv": "caf\xe8,caf\xe9,4\n"})
	s, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w := s.Warnings(); s.RowName(0) != "caf\ufffd" || s.ColName(1) != "caf\ufffd" || s.Rows != 2 || len(w) != 1 || !strings.Contains(w[0], "3 lines are not valid UTF-8") {
		t.Errorf("%+v, warnings %q", s, w)
	}
	row, col, err := Fields([]byte("caf\xe9\tfilm"))
	if string(row) != "caf\ufffd" || string(col) != "film" || err != nil {
		t.Errorf("a question for %q, %q, %v", row, col, err)
	}
	if cells, others, err := LoadCells(filepath.Join(dir, "test.csv"), NewNames([]string{"caf\ufffd"}, []string{"caf\ufffd"})); len(cells) != 1 || others != 0 || err != nil {
		t.Errorf("%v, %d others, %v", cells, others, err)
	}
}

func TestABadLineIsReportedWithFileLineAndReason(t *testing.T) {
	head := "%%MatrixMarket matrix coordinate real general\n"
	for name, c := range map[string][3]string{
		"too few fields":        {"a.data", "1\t1\t5\n1\t1\n", "a.data:2: 2 fields"},
		"too many fields":       {"a.data", "1\t1\t5\t0\t7\n", "a.data:1: 5 fields"},
		"another separator":     {"a.data", "1\t1\t5\n1,1,5\n", "a.data:2: 1 field separated"},
		"no value":              {"a.csv", "1,1,5\n1,1,\n", "a.csv:2: the value is \"\""},
		"not a number":          {"a.csv", "1,1,5\n1,2,x\n", "a.csv:2: the value is \"x\""},
		"NaN":                   {"a.csv", "1,1,NaN\n", "a.csv:1: the value is \"NaN\""},
		"too large":             {"a.csv", "1,1,1e39\n", "a.csv:1: the value is \"1e39\""},
		"a second heading":      {"a.csv", "u,i,r\nu,i,r\n", "a.csv:2: the value"},
		"a heading elsewhere":   {"a.data", "1\t2\t3\nuser\titem\trating\n", "a.data:2: the value"},
		"a first line cut off":  {"a.csv", "1,1\n", "a.csv:1: 2 fields"},
		"a bad time":            {"a.dat", "1::1::5::yesterday\n", "a.dat:1: the time is \"yesterday\""},
		"no row":                {"a.dat", "::1::5\n", "a.dat:1: the name of the row is empty"},
		"no column":             {"a.dat", "1:: ::5\n", "a.dat:1: the name of the column is empty"},
		"quotes":                {"a.csv", "\"1\",1,5\n", "a.csv:1: the name of the row"},
		"not a text file":       {"a.csv", "1,\x00,5\n", "a.csv:1: the name of the column"},
		"a long line":           {"a.csv", "1,1,5\n" + strings.Repeat("1", maxLine+1), "a.csv:2: longer than"},
		"gzip by another name":  {"a.data", "\x1f\x8b\x08\x00\x00", "a.data:1: 1 field separated"},
		"no cells":              {"a.data", "\n\n", "holds no cells"},
		"an unknown ending":     {"a.txt", "1\t1\t5\n", "a.txt: the name ends in none of .base, .csv"},
		"an empty matrix file":  {"a.mtx", "", "a.mtx: the file is empty"},
		"no banner":             {"a.mtx", "2 2 1\n1 1 5\n", "a.mtx:1: the first line is \"2 2 1\""},
		"a pattern":             {"a.mtx", strings.Replace(head, "real", "pattern", 1), "a.mtx:1: the first line"},
		"a symmetric matrix":    {"a.mtx", strings.Replace(head, "general", "symmetric", 1), "a.mtx:1: the first line"},
		"no sizes":              {"a.mtx", head + "% nothing\n", "a.mtx: no line with the numbers"},
		"two sizes":             {"a.mtx", head + "2 2\n", "a.mtx:2: 2 numbers"},
		"a size that is none":   {"a.mtx", head + "2 -2 1\n", "a.mtx:2: number 2 is \"-2\""},
		"a huge size":           {"a.mtx", head + "99999999999 2 1\n", "a.mtx:2: number 1"},
		"a cell outside":        {"a.mtx", head + "2 2 1\n1 3 5\n", "a.mtx:3: the column is \"3\", want 1 … 2"},
		"counted from 0":        {"a.mtx", head + "2 2 1\n0 1 5\n", "a.mtx:3: the row is \"0\""},
		"a cell without value":  {"a.mtx", head + "2 2 1\n1 1\n", "a.mtx:3: \"1 1\", want row"},
		"a cell with two":       {"a.mtx", head + "2 2 1\n1 1 5 6\n", "a.mtx:3: \"1 1 5 6\", want row"},
		"more cells than said":  {"a.mtx", head + "2 2 1\n1 1 5\n1 2 5\n", "a.mtx:4: more cells"},
		"fewer cells than said": {"a.mtx", head + "2 2 2\n1 1 5\n", "a.mtx: the file ends 1 cells early"},
		"no cells in a matrix":  {"a.mtx", head + "2 2 0\n", "holds no cells"},
	} {
		_, err := Load(filepath.Join(folder(t, map[string]string{c[0]: c[1]}), c[0]), Options{})
		if err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s: error %v, want %q", name, err, c[2])
		}
	}
}

// A share was asked for, so to ask for one would not help.
func TestAMatrixOfWhichNoCellCanBeHeldOutIsNamed(t *testing.T) {
	dir := folder(t, map[string]string{"diagonal.csv": "a,x,1\nb,y,2\nc,z,3\n", "square.csv": "a,x,1\na,y,2\nb,x,3\nb,y,4\n"})
	for _, c := range []struct {
		name  string
		share float64
		says  string // empty: it is read
	}{
		{"diagonal.csv", 0.4, "each row and column keeps one to train"},
		{"square.csv", 0.1, "a share of 0.1 is 0.4 of them"},
		{"square.csv", 0.3, ""},
		{"diagonal.csv", 0, ""},
	} {
		s, err := Load(filepath.Join(dir, c.name), Options{Test: c.share})
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.name)) {
			t.Errorf("%s with %v held out: %+v, error %v", c.name, c.share, s, err)
		}
	}
}

func TestMissingAndDoubleFilesAreNamed(t *testing.T) {
	const cell = "1\t1\t5\n"
	const head = "%%MatrixMarket matrix coordinate real general\n"
	for name, c := range map[string]struct {
		files map[string]string
		o     Options
		want  string
	}{
		"an empty folder":      {map[string]string{}, Options{}, "no train.base"},
		"no such split":        {map[string]string{"u1.base": cell, "u1.test": cell}, Options{Split: "u9"}, "no u9.base"},
		"half a split":         {map[string]string{"u1.base": cell}, Options{Split: "u1"}, "no u1.test"},
		"two single files":     {map[string]string{"u.data": cell, "ratings.csv": cell}, Options{}, "both"},
		"plain and gzip":       {map[string]string{"u1.base": cell, "u1.base.gz": cell, "u1.test": cell}, Options{Split: "u1"}, "both"},
		"only a part":          {map[string]string{"train.tsv": cell}, Options{}, "no test.base"},
		"two kinds of parts":   {map[string]string{"train.tsv": cell, "test.mtx": head + "1 1 1\n1 1 1\n"}, Options{}, "one is in coordinate format"},
		"two sizes":            {map[string]string{"train.mtx": head + "1 1 1\n1 1 1\n", "test.mtx": head + "2 1 1\n1 1 1\n"}, Options{}, "2 rows and 1 columns, but that of"},
		"a split of a path":    {map[string]string{}, Options{Split: "../u1"}, "without a folder"},
		"a share that is none": {map[string]string{"u.data": cell}, Options{Test: 1}, "Options.Test is 1"},
	} {
		dir := folder(t, c.files)
		if _, err := Load(dir, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "nowhere"), Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("no folder: %v", err)
	}
	path := filepath.Join(folder(t, map[string]string{"u.data": cell}), "u.data")
	if _, err := Load(path, Options{Split: "u1"}); err == nil || !strings.Contains(err.Error(), "is a file") {
		t.Errorf("a split of a file: %v", err)
	}
}

func FuzzReaders(f *testing.F) {
	kinds := []string{".data", ".csv", ".dat"}
	f.Add(uint8(0), []byte("1\t1\t5\t881250949\n2\t1\t3.5\n"))
	f.Add(uint8(1), []byte("userId,movieId,rating,timestamp\n1,2,3.5,1112486027\n"))
	f.Add(uint8(2), []byte("1::1193::5::978300760\n1::2::3\n"))
	f.Fuzz(func(t *testing.T, kind uint8, text []byte) {
		readAny(t, kinds[int(kind)%len(kinds)], text)
	})
}

func FuzzCoordinate(f *testing.F) {
	f.Add([]byte(matrix))
	f.Add([]byte("%%MatrixMarket matrix coordinate real general\n2147483647 2147483647 281474976710656\n1 1 1"))
	f.Add([]byte("%%MatrixMarket matrix coordinate integer general\n% a comment\n2 3 2\n1 3 5\n2\t1 -1e3\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		readAny(t, ".mtx", text)
	})
}

// readAny reads a file of a kind, which is refused with its name, or makes a set
// that is right.
func readAny(t *testing.T, end string, text []byte) {
	l := newLoader()
	var err error
	l.set.Train, err = l.read(lines.New("file", bytes.NewReader(text), 1<<10), "file", separators[end])
	if err != nil {
		if !strings.HasPrefix(err.Error(), "file:") {
			t.Errorf("the error %v names no file", err)
		}
		return
	}
	if n := bytes.Count(text, []byte("\n")) + 1; len(l.set.Train) > n {
		t.Errorf("%d cells in %d lines", len(l.set.Train), n)
	}
	s := l.done()
	if len(s.Train) == 0 {
		return // which Load refuses
	}
	if err := s.Check(); err != nil {
		t.Errorf("a set that was read is wrong: %v", err)
	}
}

// data is the folder of the real data, or the test is skipped.
func data(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("GODWIT_DATA")
	if dir == "" {
		t.Skip("set GODWIT_DATA to a folder with mf/ml-100k to read real data")
	}
	return filepath.Join(dir, "mf", "ml-100k")
}

func TestMovieLens100kHasItsCounts(t *testing.T) {
	dir := data(t)
	s, err := Load(dir, Options{Test: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(); err != nil || s.Rows != 943 || s.Cols != 1682 || len(s.Train) != 90_000 || len(s.Test) != 10_000 {
		t.Errorf("u.data: %d users, %d films, %d and %d ratings, %v", s.Rows, s.Cols, len(s.Train), len(s.Test), err)
	}
	for _, split := range []string{"u1", "u2"} {
		s, err := Load(dir, Options{Split: split})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); err != nil || s.Rows != 943 || s.Cols != 1682 || len(s.Train) != 80_000 || len(s.Test) != 20_000 {
			t.Errorf("%s: %d users, %d films, %d and %d ratings, %v", split, s.Rows, s.Cols, len(s.Train), len(s.Test), err)
		}
		if m := s.Mean(); m < 3.5 || m > 3.55 {
			t.Errorf("%s: mean %v", split, m)
		}
	}
}
