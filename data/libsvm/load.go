package libsvm

import (
	"errors"
	"fmt"
	"io"
	"slices"

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
	// Target says what the labels are; empty means [Auto].
	Target Target
	// Classes are the labels of the classes, in their order. Empty: those of the
	// file, ascending.
	Classes []string
}

// Check returns what is wrong with the options.
func (o Options) Check() error {
	if o.HashBits < 0 || o.HashBits > MaxHashBits {
		return setting.Bad("libsvm.Options", "HashBits", o.HashBits, fmt.Sprintf("0 (features have numbers) … %d", MaxHashBits))
	}
	_, err := labelsOf(o)
	return err
}

// maxLine bounds a line, without its line end: some hundred thousand pairs.
const maxLine = 1 << 22

// A scanner reads examples one after the other, in the memory of one line.
type scanner struct {
	lines *lines.Scanner
	parse parser
	label float32
	third error // of the third label, if labels are not values
	large error // of a label that is too large, if labels are classes
	err   error

	mended int // lines that were not UTF-8
}

func newScanner(in *lines.Scanner, o Options, l labels) *scanner {
	return &scanner{lines: in, parse: parser{hashBits: o.HashBits, labels: l}}
}

// scan reads the next example and reports whether there is one.
func (s *scanner) scan() bool {
	for s.err == nil && s.lines.Scan() {
		text, bad := lines.Mend(s.lines.Text())
		if bad {
			s.mended++
		}
		label, ok, err := s.parse.line(text)
		if err != nil {
			s.err = s.lines.Fail(err)
			return false
		}
		if third := s.parse.labels.third; third != nil && s.third == nil {
			s.third = s.lines.Fail(third)
		}
		if large := s.parse.labels.large; large != nil && s.large == nil {
			s.large = s.lines.Fail(large)
		}
		if ok {
			s.label = label
			return true
		}
	}
	return false
}

// example returns the example that scan read: its label, as a [Set] has it, its
// features, ascending, and their values. The slices are valid until the next scan.
func (s *scanner) example() (label float32, features []uint32, values []float32) {
	return s.label, s.parse.features, s.parse.values
}

// failure returns what ended the scan before the end of the file, with file and
// line, or nil.
func (s *scanner) failure() error {
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
	labels, err := labelsOf(o)
	if err != nil {
		return nil, err
	}
	return readAll(path, newScanner(l, o, labels), o)
}

// Read is Load from a reader. Name, of the file, is for errors.
func Read(name string, r io.Reader, o Options) (*Set, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	labels, err := labelsOf(o)
	if err != nil {
		return nil, err
	}
	return readAll(name, newScanner(lines.New(name, r, maxLine), o, labels), o)
}

func readAll(name string, s *scanner, o Options) (*Set, error) {
	set := &Set{}
	for s.scan() {
		set.Append(s.example())
	}
	if err := s.failure(); err != nil {
		return nil, err
	}
	if set.Len() == 0 {
		return nil, fmt.Errorf("libsvm: %s holds no examples", name)
	}
	names, numbers, err := s.parse.labels.decide()
	switch {
	case err == errTooLarge:
		return nil, fmt.Errorf("libsvm: %w", s.large)
	case err != nil:
		return nil, fmt.Errorf("libsvm: %w", s.third)
	}
	set.Classes, set.mended = names, s.mended
	if numbers != nil {
		for i, x := range set.Labels {
			class, _ := slices.BinarySearch(numbers, x)
			set.Labels[i] = float32(class)
		}
	}
	if o.HashBits > 0 {
		set.Width = 1 << o.HashBits
	}
	return set, nil
}
