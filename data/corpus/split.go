package corpus

import "bytes"

// A Splitter splits texts in memory into words. It belongs to one goroutine.
type Splitter struct{ s *scanner }

// NewSplitter returns a splitter of texts of a format.
func NewSplitter(f Format) *Splitter { return &Splitter{newScanner(f, MaxBlock)} }

// Words returns the words of a text, as [Open] finds them.
func (p *Splitter) Words(line []byte) (words []string, err error) {
	p.s.reset(bytes.NewReader(line), 0)
	for {
		t, err := p.s.next()
		switch {
		case err != nil:
			return nil, err
		case t == text:
			return words, nil
		case t == word:
			words = append(words, string(p.s.word))
		}
	}
}

// Replaced returns how many bytes were not UTF-8 so far.
func (p *Splitter) Replaced() int64 { return p.s.replaced }
