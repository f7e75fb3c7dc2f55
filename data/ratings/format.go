package ratings

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-ps/godwit/data/lines"
	"github.com/godwit-ps/godwit/internal/plural"
)

// maxLine bounds a line: cells are short.
const maxLine = 1 << 14

// coordinate stands for the format of Matrix Market among the separators.
const coordinate = ""

// separators are what stands between the fields of a line, by the ending of the
// file's name.
var separators = map[string]string{
	".data": "\t", ".base": "\t", ".test": "\t", ".tsv": "\t", ".csv": ",", ".dat": "::", ".mtx": coordinate, ".mmc": coordinate,
}

func endings() []string {
	var ends []string
	for end := range separators {
		ends = append(ends, end)
	}
	slices.Sort(ends)
	return ends
}

// A loader reads the files of a set.
type loader struct {
	set        Set
	rows, cols interner
	files      int
	sized      string // the file in coordinate format that said how large the matrix is
}

func newLoader() *loader {
	return &loader{rows: interner{ids: map[string]uint32{}}, cols: interner{ids: map[string]uint32{}}}
}

// done returns the set once all files are read.
func (l *loader) done() *Set {
	if l.sized == "" {
		l.set.Rows, l.set.RowNames = len(l.rows.names), l.rows.names
		l.set.Cols, l.set.ColNames = len(l.cols.names), l.cols.names
	}
	return &l.set
}

// An interner numbers names in the order of their first appearance.
type interner struct {
	names []string
	ids   map[string]uint32
}

func (n *interner) id(name []byte) (uint32, error) {
	if id, ok := n.ids[string(name)]; ok {
		return id, nil
	}
	if len(n.names) == math.MaxInt32 {
		return 0, fmt.Errorf("more than %d different names", math.MaxInt32)
	}
	id, s := uint32(len(n.names)), string(name)
	n.ids[s] = id
	n.names = append(n.names, s)
	return id, nil
}

// file reads the cells of a file.
func (l *loader) file(path string) (cells []Rating, err error) {
	plain := strings.TrimSuffix(path, ".gz")
	sep, ok := separators[filepath.Ext(plain)]
	if !ok {
		return nil, fmt.Errorf("ratings: %s: the name ends in none of %s, with .gz or without", path, strings.Join(endings(), ", "))
	}
	s, err := lines.Open(path, maxLine)
	if err != nil {
		return nil, fmt.Errorf("ratings: %w", err)
	}
	defer s.Close()
	if cells, err = l.read(s, path, sep); err != nil {
		return nil, fmt.Errorf("ratings: %w", err)
	}
	return cells, nil
}

func (l *loader) read(s *lines.Scanner, path, sep string) ([]Rating, error) {
	mixed := l.files > 0 && (sep == coordinate) != (l.sized != "")
	l.files++
	switch {
	case mixed:
		return nil, fmt.Errorf("%s: of the two files of a matrix, one is in coordinate format, whose rows and columns have no names: have both alike", path)
	case sep == coordinate:
		return l.readCoordinate(s, path)
	}
	return l.readFields(s, path, sep)
}

// readFields reads a cell a line.
func (l *loader) readFields(s *lines.Scanner, path, sep string) (cells []Rating, err error) {
	by := []byte(sep)
	for first := true; s.Scan(); {
		text, bad := lines.Mend(s.Text())
		if len(text) == 0 {
			continue
		}
		if bad {
			l.set.mended++
		}
		heading := first && (sep == "," || sep == "\t") // the first line may be one
		first = false
		c, err := l.fields(text, by)
		if err != nil && heading && isHeading(text, by) {
			l.set.headings = append(l.set.headings, fmt.Sprintf("%s: %.80q", path, text))
			continue
		}
		if err != nil {
			return nil, s.Fail(err)
		}
		cells = append(cells, c)
	}
	return cells, s.Err()
}

// isHeading reports whether a line names the fields: none is a number.
func isHeading(text, sep []byte) bool {
	for f := range bytes.SplitSeq(text, sep) {
		if _, err := strconv.ParseFloat(string(f), 64); err == nil {
			return false
		}
	}
	return bytes.Index(text, sep) > 0
}

// fields reads a cell from a line of fields.
func (l *loader) fields(text, sep []byte) (c Rating, err error) {
	var f [4][]byte
	n := 0
	for rest, more := text, true; more; n++ {
		var field []byte
		field, rest, more = bytes.Cut(rest, sep)
		if n < len(f) {
			f[n] = field
		}
	}
	if n < 3 || n > 4 {
		return c, fmt.Errorf("%s separated by %q, want 3 or 4: row, column, value and, maybe, time", plural.Of(n, "field"), sep)
	}
	if c.Value, err = value(f[2]); err != nil {
		return c, err
	}
	if n == 4 {
		if _, err := strconv.ParseFloat(string(bytes.TrimSpace(f[3])), 64); err != nil {
			return c, fmt.Errorf("the time is %.40q, want a number of seconds", f[3])
		}
	}
	if err = checkName("row", f[0]); err != nil {
		return c, err
	}
	if err = checkName("column", f[1]); err != nil {
		return c, err
	}
	if c.Row, err = l.rows.id(f[0]); err != nil {
		return c, err
	}
	c.Col, err = l.cols.id(f[1])
	return c, err
}

func checkName(what string, name []byte) error {
	switch {
	case len(bytes.TrimSpace(name)) == 0:
		return fmt.Errorf("the name of the %s is empty", what)
	case bytes.ContainsAny(name, "\x00\"\r"):
		return fmt.Errorf("the name of the %s, %.40q, holds a quote, NUL or carriage return", what, name)
	}
	return nil
}

func value(text []byte) (float32, error) {
	x, err := strconv.ParseFloat(string(bytes.TrimSpace(text)), 32)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("the value is %.40q, want a finite number", text)
	}
	return float32(x), nil
}
