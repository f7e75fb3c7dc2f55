package triples

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxLine bounds a line, without its line end. Names are a few dozen bytes; a
// longer line means that the file is something else.
const maxLine = 1 << 16

var (
	errBlank  = errors.New("only spaces, want head, relation and tail")
	errUTF8   = errors.New("not valid UTF-8")
	errNUL    = errors.New("a NUL byte, is this a text file?")
	errReturn = errors.New("a carriage return inside the line, is this a file of old line ends?")
	fieldName = [3]string{"first", "second", "third"}
)

// fields splits a line without its line end into its three fields. tabs says
// whether the file is separated by tabs. The fields alias line.
func fields(line []byte, tabs bool) (f [3][]byte, err error) {
	switch {
	case !utf8.Valid(line):
		return f, errUTF8
	case bytes.IndexByte(line, 0) >= 0:
		return f, errNUL
	case bytes.IndexByte(line, '\r') >= 0:
		return f, errReturn
	case len(bytes.Trim(line, " ")) == 0:
		return f, errBlank
	case tabs:
		return tabFields(line)
	default:
		return blankFields(line)
	}
}

// tabFields splits at every tab and takes names as they stand.
func tabFields(line []byte) (f [3][]byte, err error) {
	if n := bytes.Count(line, []byte{'\t'}) + 1; n != 3 {
		return f, fmt.Errorf("%d tab-separated fields, want 3: head, relation, tail", n)
	}
	i, j := bytes.IndexByte(line, '\t'), bytes.LastIndexByte(line, '\t')
	f = [3][]byte{line[:i], line[i+1 : j], line[j+1:]}
	for k := range f {
		if len(bytes.Trim(f[k], " ")) == 0 {
			return f, fmt.Errorf("the %s field is empty", fieldName[k])
		}
	}
	return f, nil
}

// blankFields splits at runs of spaces and tabs.
func blankFields(line []byte) (f [3][]byte, err error) {
	n := 0
	for i := 0; i < len(line); {
		if isBlank(line[i]) {
			i++
			continue
		}
		from := i
		for i < len(line) && !isBlank(line[i]) {
			i++
		}
		if n < 3 {
			f[n] = line[from:i]
		}
		n++
	}
	if n != 3 {
		return f, fmt.Errorf("%d fields separated by spaces, want 3: head, relation, tail", n)
	}
	return f, nil
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
