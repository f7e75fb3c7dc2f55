package libsvm

import (
	"errors"
	"fmt"
	"io"

	"github.com/godwit-ps/godwit/data/lines"

	"github.com/godwit-ps/godwit/data/setting"
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
	// Classes are the labels of negative and of positive examples. Empty: those of the
	// file, of which the smaller number is negative. A [Scanner] reads 1 and -1 or 0.
	Classes [2]string
}

// Check returns what is wrong with the options.
func (o Options) Check() error {
	if o.HashBits < 0 || o.HashBits > MaxHashBits {
		return setting.Bad("libsvm.Options", "HashBits", o.HashBits, fmt.Sprintf("0 (features have numbers) … %d", MaxHashBits))
	}
	_, err := labelsOf(o.Classes)
	return err
}

// maxLine bounds a line, without its line end: some hundred thousand pairs.
const maxLine = 1 << 22

// A Scanner reads examples one after the other, in the memory of one line. It
// belongs to one goroutine.
type Scanner struct {
	lines    *lines.Scanner
	parse    parser
	positive bool
	err      error
}

// NewScanner reads from r. Name, of the file, is for errors.
func NewScanner(name string, r io.Reader, o Options) (*Scanner, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return newScanner(lines.New(name, r, maxLine), o), nil
}

func newScanner(l *lines.Scanner, o Options) *Scanner {
	return &Scanner{lines: l, parse: parser{hashBits: o.HashBits}}
}

// Scan reads the next example and reports whether there is one.
func (s *Scanner) Scan() bool {
	for s.err == nil && s.lines.Scan() {
		positive, ok, err := s.parse.line(s.lines.Text())
		if err != nil {
			s.err = s.lines.Fail(err)
		} else if ok {
			s.positive = positive
			return true
		}
	}
	return false
}

// Example returns the example that Scan read: its label, its features,
// ascending, and their values. The slices are valid until the next Scan.
func (s *Scanner) Example() (positive bool, features []uint32, values []float32) {
	return s.positive, s.parse.features, s.parse.values
}

// Err returns what ended the scan before the end of the file, with file and
// line, or nil.
func (s *Scanner) Err() error {
	err := s.err
	if err == nil {
		err = s.lines.Err()
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("libsvm: %w", err)
}

// Load reads the examples of a file; the package comment describes it.
func Load(path string, o Options) (set *Set, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	l, err := lines.Open(path, maxLine)
	if err != nil {
		return nil, fmt.Errorf("libsvm: %w", err)
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return readAll(path, newScanner(l, o), o)
}

// Read is Load from a reader. Name, of the file, is for errors.
func Read(name string, r io.Reader, o Options) (*Set, error) {
	s, err := NewScanner(name, r, o)
	if err != nil {
		return nil, err
	}
	return readAll(name, s, o)
}

func readAll(name string, s *Scanner, o Options) (*Set, error) {
	set := &Set{}
	var err error
	if s.parse.labels, err = labelsOf(o.Classes); err != nil {
		return nil, err
	}
	for s.Scan() {
		set.Append(s.Example())
	}
	if s.Err() != nil {
		return nil, s.Err()
	}
	if set.Len() == 0 {
		return nil, fmt.Errorf("libsvm: %s holds no examples", name)
	}
	var turned bool
	if set.Classes, turned = s.parse.labels.classes(); turned {
		for i := range set.Labels {
			set.Labels[i] = !set.Labels[i]
		}
	}
	if o.HashBits > 0 {
		set.Width = 1 << o.HashBits
	}
	return set, nil
}
