// Package lines reads text files line by line, compressed or not, and says of
// which file and line it speaks when something is wrong.
package lines

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/godwit-ps/godwit/internal/plural"
)

// A Scanner reads lines in the memory of one. It belongs to one goroutine.
type Scanner struct {
	name   string
	in     *bufio.Reader
	max    int
	line   int
	text   []byte
	err    error
	closes []io.Closer
}

// Open opens a file, which is decompressed if its name ends in .gz. Max bounds
// a line's bytes without its end.
func Open(path string, max int) (*Scanner, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(path, ".gz") {
		s := New(path, f, max)
		s.closes = []io.Closer{f}
		return s, nil
	}
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, reason(err, max)), f.Close())
	}
	s := New(path, z, max)
	s.closes = []io.Closer{z, f}
	return s, nil
}

// New reads from r. Name, of the file, is for errors.
func New(name string, r io.Reader, max int) *Scanner {
	const mark = len(byteOrderMark)
	return &Scanner{name: name, in: bufio.NewReaderSize(r, max+2+mark), max: max} // a longest line with CR LF
}

const byteOrderMark = "\ufeff"

// Scan reads the next line and reports whether there is one. A last line
// without its end counts, if it has any characters.
func (s *Scanner) Scan() bool {
	if s.err != nil {
		return false
	}
	text, err := s.in.ReadSlice('\n')
	s.line++
	s.text = trimEnd(text)
	if s.line == 1 {
		s.text = bytes.TrimPrefix(s.text, []byte(byteOrderMark))
	}
	switch {
	case err != nil && err != io.EOF:
		s.err = s.Fail(reason(err, s.max))
		return false
	case len(s.text) > s.max:
		s.err = s.Fail(tooLong(s.max))
		return false
	}
	s.err = err // io.EOF after the last line
	return err == nil || len(s.text) > 0
}

// Mend returns text with U+FFFD in the place of what is not UTF-8, and whether it had any such. Text that had none is returned as it is.
func Mend(text []byte) ([]byte, bool) {
	if utf8.Valid(text) {
		return text, false
	}
	return bytes.ToValidUTF8(text, []byte("\ufffd")), true
}

// Replaced returns the warning that Mend has replaced something in n lines of a file with names.
func Replaced(n int) string {
	return fmt.Sprintf("%s not valid UTF-8: what is not was replaced by U+FFFD, so names that differ there are one", plural.Of(n, "line is", "lines are"))
}

// Text returns the line that Scan read, without LF or CR LF, until the next
// Scan.
func (s *Scanner) Text() []byte { return s.text }

// Line returns its number, from 1 on.
func (s *Scanner) Line() int { return s.line }

// Fail returns the error with file and line before it.
func (s *Scanner) Fail(err error) error { return s.FailAt(s.line, err) }

// FailAt returns the error with file and an earlier line before it.
func (s *Scanner) FailAt(line int, err error) error {
	return fmt.Errorf("%s:%d: %w", s.name, line, err)
}

// More reports whether a whole line is there to be scanned without waiting.
func (s *Scanner) More() bool {
	there, _ := s.in.Peek(s.in.Buffered()) // cannot fail: it asks for no more
	return bytes.IndexByte(there, '\n') >= 0
}

// Err returns what ended the scan before the end of the file, with file and
// line, or nil.
func (s *Scanner) Err() error {
	if s.err == io.EOF {
		return nil
	}
	return s.err
}

// Close closes the file that Open opened.
func (s *Scanner) Close() error {
	var errs []error
	for _, c := range s.closes {
		errs = append(errs, c.Close())
	}
	s.closes = nil
	return errors.Join(errs...)
}

// trimEnd cuts LF or CR LF off.
func trimEnd(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}

func tooLong(max int) error {
	return fmt.Errorf("longer than %d bytes, is this the right kind of file?", max)
}

// reason says what an error of the readers below means for the file.
func reason(err error, max int) error {
	if errors.Is(err, bufio.ErrBufferFull) {
		return tooLong(max)
	}
	return Compressed(err)
}

// Compressed words an error of a [gzip.Reader] as one of the file. Other errors are returned as they are; an [io.EOF] must not be the end of the text.
func Compressed(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("the gzip data ends early, or is followed by something else: is the file truncated? (%w)", io.ErrUnexpectedEOF)
	case errors.Is(err, gzip.ErrHeader):
		return fmt.Errorf("not gzip data, or followed by something else (%w)", err)
	case errors.Is(err, gzip.ErrChecksum):
		return fmt.Errorf("the gzip data is damaged (%w)", err)
	default:
		return err
	}
}
