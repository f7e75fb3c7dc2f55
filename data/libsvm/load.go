package libsvm

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// MaxFeature is the largest index of a feature.
const MaxFeature = 1<<32 - 2

// MaxHashBits bounds Options.HashBits.
const MaxHashBits = 31

// Options say how features are read.
type Options struct {
	// HashBits, 1 … MaxHashBits, hashes what stands before the colon to one of
	// 2^HashBits features. 0 takes it as the feature's number.
	HashBits int
}

// Check says what is wrong with the options.
func (o Options) Check() error {
	if o.HashBits < 0 || o.HashBits > MaxHashBits {
		return fmt.Errorf("libsvm: Options.HashBits is %d, want 0 (features have numbers) … %d", o.HashBits, MaxHashBits)
	}
	return nil
}

// A Scanner reads examples one after the other, in the memory of one line. It
// belongs to one goroutine.
type Scanner struct {
	name     string
	in       *bufio.Reader
	long     []byte // a line that is longer than in's buffer
	parse    parser
	line     int
	positive bool
	err      error
}

// NewScanner reads from r. Name, of the file, is for errors.
func NewScanner(name string, r io.Reader, o Options) (*Scanner, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	s := &Scanner{name: name, in: bufio.NewReaderSize(r, 1<<16), parse: parser{hashBits: o.HashBits}}
	if bom, _ := s.in.Peek(3); string(bom) == "\ufeff" {
		_, _ = s.in.Discard(3) // cannot fail: these bytes were peeked
	}
	return s, nil
}

// Scan reads the next example and reports whether there is one.
func (s *Scanner) Scan() bool {
	for s.err == nil {
		text, err := s.next()
		if err != nil && err != io.EOF {
			s.fail(err)
			return false
		}
		positive, ok, perr := s.parse.line(trimEnd(text))
		if perr != nil {
			s.fail(perr)
			return false
		}
		s.err = err // io.EOF after the last line
		if ok {
			s.positive = positive
			return true
		}
	}
	return false
}

func (s *Scanner) fail(err error) {
	s.err = fmt.Errorf("libsvm: %s:%d: %w", s.name, s.line, ioReason(err))
}

// next returns the next line, with its end.
func (s *Scanner) next() ([]byte, error) {
	s.line++
	text, err := s.in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return text, err
	}
	s.long = s.long[:0]
	for err == bufio.ErrBufferFull {
		if s.long = append(s.long, text...); len(s.long) > maxLine+2 {
			return nil, errLong
		}
		text, err = s.in.ReadSlice('\n')
	}
	s.long = append(s.long, text...)
	return s.long, err
}

// Example returns the example that Scan read: its label, its features,
// ascending, and their values. The slices are valid until the next Scan.
func (s *Scanner) Example() (positive bool, features []uint32, values []float32) {
	return s.positive, s.parse.features, s.parse.values
}

// Err returns what ended the scan before the end of the file, or nil.
func (s *Scanner) Err() error {
	if s.err == io.EOF {
		return nil
	}
	return s.err
}

// Load reads the examples of a file; the package comment describes it.
func Load(path string, o Options) (set *Set, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("libsvm: %w", err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bufio.NewReader(f))
		if err != nil {
			return nil, fmt.Errorf("libsvm: %s: %w", path, ioReason(err))
		}
		defer z.Close()
		r = z
	}
	return Read(path, r, o)
}

// Read is Load from a reader. Name, of the file, is for errors.
func Read(name string, r io.Reader, o Options) (*Set, error) {
	s, err := NewScanner(name, r, o)
	if err != nil {
		return nil, err
	}
	set := &Set{}
	for s.Scan() {
		set.Append(s.Example())
	}
	if s.Err() != nil {
		return nil, s.Err()
	}
	if set.Len() == 0 {
		return nil, fmt.Errorf("libsvm: %s holds no examples", name)
	}
	if o.HashBits > 0 {
		set.Width = 1 << o.HashBits
	}
	return set, nil
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

// ioReason says what an error of the readers below means for the file.
func ioReason(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("the gzip data ends early, is the file truncated? (%w)", io.ErrUnexpectedEOF)
	case errors.Is(err, gzip.ErrHeader):
		return fmt.Errorf("not gzip data, or followed by something else (%w)", err)
	case errors.Is(err, gzip.ErrChecksum):
		return fmt.Errorf("the gzip data is damaged (%w)", err)
	default:
		return err
	}
}
