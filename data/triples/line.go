package triples

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit/internal/plural"
)

// maxLine bounds a line, without its line end. Names are a few dozen bytes; a
// longer line means that the file is something else.
const maxLine = 1 << 16

var (
	errUTF8   = errors.New("not valid UTF-8")
	errBlank  = errors.New("only spaces, want head, relation and tail")
	errNUL    = errors.New("a NUL byte, is this a text file?")
	errReturn = errors.New("a carriage return inside the line, is this a file of old line ends?")
	errQuote  = errors.New("a quote that does not end in this line, or is not alone around its field")
)

// A separator is what stands between the fields of a line.
type separator int

const (
	tab   separator = iota
	blank           // runs of spaces and tabs
	comma           // fields may stand in double quotes, in which a double quote is written twice
)

func (s separator) String() string { return [...]string{"tabs", "spaces", "commas"}[s] }

// A splitter takes lines apart. It belongs to one goroutine.
type splitter struct {
	layout
	by     separator
	fields [][]byte
	quoted []byte // the text of fields with quotes within
}

// split returns head, relation and tail of a line without its line end. They are valid
// until the next call.
func (p *splitter) split(line []byte) (f [3][]byte, err error) {
	switch {
	case bytes.IndexByte(line, 0) >= 0:
		return f, errNUL
	case bytes.IndexByte(line, '\r') >= 0:
		return f, errReturn
	case len(bytes.Trim(line, " ")) == 0:
		return f, errBlank
	}
	p.fields = p.fields[:0]
	switch p.by {
	case tab:
		for field := range bytes.SplitSeq(line, []byte{'\t'}) {
			p.fields = append(p.fields, field)
		}
	case blank:
		p.fields = append(p.fields, bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })...)
	case comma:
		if err := p.splitQuoted(line); err != nil {
			return f, err
		}
	}
	if n := len(p.fields); n != p.columns {
		return f, fmt.Errorf("%s separated by %v, want %d: %v%s", plural.Of(n, "field"), p.by, p.columns, p.layout, p.advice())
	}
	for r, i := range p.at {
		if f[r] = p.fields[i]; len(bytes.Trim(f[r], " ")) == 0 {
			return f, fmt.Errorf("the %s, field %d, is empty", roles[r], i+1)
		}
	}
	return f, nil
}

// advice is for files of other columns.
func (p *splitter) advice() string {
	if p.given || len(p.fields) < 3 {
		return ""
	}
	return "; if the others are not needed, say which columns are which (--columns head,relation,tail,-)"
}

// splitQuoted splits at commas, as RFC 4180 has it within a line.
func (p *splitter) splitQuoted(line []byte) error {
	p.quoted = p.quoted[:0]
	if cap(p.quoted) < len(line) {
		p.quoted = make([]byte, 0, len(line)) // fields are parts of it, which stay where they are
	}
	for {
		field, rest, more := bytes.Cut(line, []byte{','})
		if len(line) > 0 && line[0] == '"' {
			var err error
			if field, rest, more, err = p.unquote(line[1:]); err != nil {
				return err
			}
		} else if bytes.IndexByte(field, '"') >= 0 {
			return errQuote
		}
		p.fields = append(p.fields, field)
		if line = rest; !more {
			return nil
		}
	}
}

// unquote reads a field whose first quote was read.
func (p *splitter) unquote(text []byte) (field, rest []byte, more bool, err error) {
	from := len(p.quoted)
	for {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			return nil, nil, false, errQuote
		}
		p.quoted = append(p.quoted, text[:i]...)
		switch text = text[i+1:]; {
		case len(text) == 0:
			return p.quoted[from:], nil, false, nil
		case text[0] == ',':
			return p.quoted[from:], text[1:], true, nil
		case text[0] != '"':
			return nil, nil, false, errQuote
		}
		p.quoted = append(p.quoted, '"')
		text = text[1:]
	}
}
