package corpus

import (
	"fmt"
)

// A Text is words by sentences.
type Text struct {
	// Words are numbers of the vocabulary.
	Words []int32
	// Ends are where sentences end in Words: the first is Words[:Ends[0]]. Each
	// has at least one word.
	Ends []int32
	// Raw is the number of words of the text that these were taken from, those
	// that are no part of the vocabulary included.
	Raw int
}

// A Reader reads blocks, fastest in their order. It belongs to one goroutine.
type Reader struct {
	c    *Corpus
	s    *scanner
	in   *stream // nil: none is open
	file int     // that is open
	next int     // the block where the scanner stands; -1 nowhere
}

// Reader returns a reader.
func (c *Corpus) Reader() *Reader {
	return &Reader{c: c, s: newScanner(c.options.Format, c.options.Block), next: -1}
}

// Read reads a block, 0 … Blocks()-1, into t, whose memory it uses again.
func (r *Reader) Read(block int, t *Text) error {
	t.Words, t.Ends, t.Raw = t.Words[:0], t.Ends[:0], 0
	if block < 0 || block >= r.c.Blocks() {
		return fmt.Errorf("corpus: no block %d, there are 0 … %d", block, r.c.Blocks()-1)
	}
	if err := r.seek(block); err != nil {
		return err
	}
	if err := r.scan(block, t); err != nil {
		r.next = -1
		return fmt.Errorf("corpus: %s, about byte %d: %w", r.c.files[r.file].name, r.s.position(), err)
	}
	r.next = block + 1
	return nil
}

// seek makes the scanner stand at a block.
func (r *Reader) seek(block int) error {
	file := r.c.file(block)
	if r.in != nil && r.file == file && r.next == block {
		return nil
	}
	at := r.c.starts[block]
	r.next = -1
	if r.in != nil && r.file == file && r.s.forward(at) {
		return nil
	}
	for {
		if r.in == nil || r.file != file {
			if err := r.Close(); err != nil {
				return err
			}
			in, err := r.c.files[file].open()
			if err != nil {
				return err
			}
			r.in, r.file = in, file
		}
		ok, err := r.in.skipTo(at)
		if err != nil {
			return fmt.Errorf("corpus: %s: %w", r.c.files[file].name, err)
		}
		if ok {
			r.s.reset(r.in, at)
			return nil
		}
		if err := r.Close(); err != nil { // a compressed text begins again
			return err
		}
	}
}

// scan reads the words of a block, at whose beginning the scanner stands.
func (r *Reader) scan(block int, t *Text) error {
	ids := r.c.Vocabulary.ids
	begun := 0 // of Words: the sentence
	for {
		tok, err := r.s.next()
		if err != nil {
			return err
		}
		switch tok {
		case word:
			t.Raw++
			if id, ok := ids[string(r.s.word)]; ok {
				t.Words = append(t.Words, id)
			}
			continue
		case sentence:
			if len(t.Words) > begun {
				t.Ends = append(t.Ends, int32(len(t.Words)))
				begun = len(t.Words)
			}
			if t.Raw < r.c.options.Block {
				continue
			}
		case text:
			if block+1 != r.c.first[r.file+1] || t.Raw == 0 {
				return errChanged
			}
		}
		return nil
	}
}

// Close closes the file that is open. The reader can be used again.
func (r *Reader) Close() error {
	if r.in == nil {
		return nil
	}
	in := r.in
	r.in, r.next = nil, -1
	return in.Close()
}
