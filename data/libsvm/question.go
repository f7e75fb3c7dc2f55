package libsvm

import (
	"bytes"
	"errors"

	"github.com/godwit-ps/godwit/data/lines"
)

// A Parser reads the features of examples whose label is not known. It belongs to one
// goroutine.
type Parser struct{ parse parser }

// NewParser returns a parser.
func NewParser(o Options) (*Parser, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return &Parser{parser{hashBits: o.HashBits}}, nil
}

// Features reads a line of an example, with its label or without one. The slices are
// valid until the next call. What is not UTF-8 is read as U+FFFD, as in files.
func (p *Parser) Features(line []byte) (features []uint32, values []float32, err error) {
	line, _ = lines.Mend(line)
	if err := checkText(line); err != nil {
		return nil, nil, err
	}
	if i := bytes.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	first, rest := field(line)
	if len(first) == 0 {
		return nil, nil, errors.New("there is no example in this line")
	}
	if bytes.IndexByte(first, ':') < 0 { // the label
		line = rest
	}
	if err := p.parse.read(line); err != nil {
		return nil, nil, err
	}
	return p.parse.features, p.parse.values, nil
}

// Narrow leaves out the features from width on, which a model has no weights for, and
// returns how many values it has left out.
func (s *Set) Narrow(width int) (left int) {
	before := len(s.Features)
	if s.Width > width {
		s.keep(func(f uint32) bool { return int(f) < width })
	}
	s.Width = width
	return before - len(s.Features)
}
