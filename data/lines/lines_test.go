package lines

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

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

// read returns the lines of a file with this name and text.
func read(t testing.TB, name, text string) (got []string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, 20)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for s.Scan() {
		got = append(got, string(s.Text()))
		if s.Line() != len(got) {
			t.Errorf("line %d has number %d", len(got), s.Line())
		}
	}
	return got, s.Err()
}

func TestVariantsOfTheSameTextHaveTheSameLines(t *testing.T) {
	const plain = "one\n\nthree\nfour\n"
	want := []string{"one", "", "three", "four"}
	for name, c := range map[string][2]string{
		"plain":               {"a", plain},
		"no last line end":    {"a", "one\n\nthree\nfour"},
		"CR LF":               {"a", "one\r\n\r\nthree\r\nfour\r\n"},
		"CR at the end":       {"a", "one\r\n\r\nthree\r\nfour\r"},
		"byte order mark":     {"a", "\ufeff" + plain},
		"gzip":                {"a.gz", zipped(t, plain)},
		"gzip in two members": {"a.gz", zipped(t, "one\n\nth") + zipped(t, "ree\nfour\n")},
	} {
		if got, err := read(t, c[0], c[1]); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := read(t, "a", ""); err != nil || len(got) != 0 {
		t.Errorf("nothing: %q, %v", got, err)
	}
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	z := zipped(t, strings.Repeat("a line\n", 100))
	broken := []byte(z)
	broken[len(broken)-6] ^= 1
	long := strings.Repeat("x", 21)
	for name, c := range map[string][3]string{
		"a long line":      {"a", "b\n" + long + "\nc\n", "a:2: longer than 20"},
		"a long last line": {"a", "b\n" + long, "a:2: longer than 20"},
		"a very long one":  {"a", "b\n" + long + long, "a:2: longer than 20"},
		"truncated":        {"a.gz", z[:len(z)-9], "ends early"},
		"no trailer":       {"a.gz", z[:len(z)-3], "ends early"},
		"empty":            {"a.gz", "", "ends early"},
		"damaged":          {"a.gz", string(broken), "damaged"},
		"not gzip":         {"a.gz", "a line of text\n", "not gzip"},
		"junk at the end":  {"a.gz", z + "this is not a gzip header", "followed by"},
	} {
		if got, err := read(t, c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s: %d lines, error %v, want %q", name, len(got), err, c[2])
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "nowhere"), 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestALongestLineIsRead(t *testing.T) {
	want := strings.Repeat("x", 20)
	for _, end := range []string{"", "\n", "\r\n"} {
		if got, err := read(t, "a", want+end); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("with end %q: %q, %v", end, got, err)
		}
	}
}

// A pipe may have given a part of the next line: who asks for more would wait.
func TestAPartOfALineIsNoLineToComeAtOnce(t *testing.T) {
	s := New("pipe", strings.NewReader("a\nb"), 20)
	if !s.Scan() || s.More() {
		t.Errorf("%q: a line without its end is there without waiting", s.Text())
	}
	if !s.Scan() || string(s.Text()) != "b" || s.Scan() {
		t.Errorf("the last line is %q", s.Text())
	}
	if s = New("pipe", strings.NewReader("a\nb\n"), 20); !s.Scan() || !s.More() {
		t.Error("a whole line is not there at once")
	}
}
