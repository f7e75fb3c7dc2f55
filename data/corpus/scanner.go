package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// A Format says what words and sentences are. The package comment describes
// them.
type Format string

// The formats.
const (
	Prose Format = "prose"
	Lines Format = "lines"
)

// Check returns an error if there is no such format.
func (f Format) Check() error {
	if f == Prose || f == Lines {
		return nil
	}
	return fmt.Errorf("corpus: there is no format %q, want %s or %s", string(f), Prose, Lines)
}

// MaxWord bounds the bytes of a word.
const MaxWord = 255

const bufSize = 1 << 16

var (
	errNUL     = errors.New("a NUL byte, is this a text file?")
	errChanged = errors.New("the file changed since its words were counted; start again")
)

// A token is what a scanner finds.
type token int

const (
	word     token = iota
	sentence       // its end; never one without words
	text           // its end
)

// A scanner splits a text into words and sentences. What it does after the end of
// a sentence depends only on the bytes that follow, so that reading can begin
// at any end of a sentence.
type scanner struct {
	src    io.Reader
	format Format
	plain  *[utf8.RuneSelf]byte
	max    int // words of a sentence

	buf        []byte
	from, to   int // of buf: not scanned yet
	eof        bool
	line       int64 // ends of lines since the beginning
	begin      int64 // position in the text of buf[0]
	word       []byte
	n          int  // words of this sentence so far
	empty      bool // nothing but blanks since the last end of line
	tooLong    bool // the word
	longWords  int64
	replaced   int64 // bytes that are not UTF-8
	apostrophe bool  // is the word's last character
}

func newScanner(format Format, sentence int) *scanner {
	s := &scanner{format: format, plain: &plainProse, max: sentence, buf: make([]byte, bufSize), word: make([]byte, 0, MaxWord+utf8.UTFMax)}
	if format == Lines {
		s.plain = &plainLines
	}
	return s
}

// The plain characters of a format are those of ASCII that are always part of a
// word, as what. They are nearly all there are.
var plainProse, plainLines [utf8.RuneSelf]byte

func init() {
	for c := range byte(utf8.RuneSelf) {
		switch {
		case c >= 'A' && c <= 'Z':
			plainProse[c] = c + 'a' - 'A'
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			plainProse[c] = c
		}
		if c > ' ' {
			plainLines[c] = c
		}
	}
}

// run adds plain characters to the word, as far as the buffer reaches.
func (s *scanner) run() {
	buf, i := s.buf[s.from:s.to], 0
	for i < len(buf) && buf[i] < utf8.RuneSelf && s.plain[buf[i]] != 0 && len(s.word) < MaxWord {
		s.word = append(s.word, s.plain[buf[i]])
		i++
	}
	if i > 0 {
		s.from += i
		s.apostrophe = false
	}
}

// reset scans a text from position at, an end of a sentence or the beginning.
func (s *scanner) reset(src io.Reader, at int64) {
	s.src, s.from, s.to, s.eof, s.line, s.begin = src, 0, 0, false, 0, at
	s.endSentence()
}

func (s *scanner) endSentence() { s.n, s.empty = 0, false }

// position is where the text goes on after the last token.
func (s *scanner) position() int64 { return s.begin + int64(s.from) }

// forward goes on at an end of a sentence that was read already, or is next to
// be read, and reports whether it could. A source without a way back could not
// go there otherwise.
func (s *scanner) forward(at int64) bool {
	if at < s.position() || at > s.begin+int64(s.to) {
		return false
	}
	s.from = int(at - s.begin)
	s.endSentence()
	return true
}

// fill makes sure that a whole character is there to scan, or the end is known.
func (s *scanner) fill() error {
	if s.to-s.from >= utf8.UTFMax || s.eof {
		return nil
	}
	s.begin += int64(s.from)
	s.to = copy(s.buf, s.buf[s.from:s.to])
	s.from = 0
	for s.to < utf8.UTFMax && !s.eof {
		n, err := s.src.Read(s.buf[s.to:])
		s.to += n
		if err == io.EOF {
			s.eof = true
		} else if err != nil {
			return err
		}
	}
	return nil
}

// next returns the next token; a word is in s.word, until the next call.
func (s *scanner) next() (token, error) {
	s.word, s.tooLong, s.apostrophe = s.word[:0], false, false
	if s.n == s.max {
		s.endSentence()
		return sentence, nil
	}
	for {
		s.run()
		if err := s.fill(); err != nil {
			return text, err
		}
		if s.from == s.to {
			switch {
			case s.ends():
				return word, nil
			case s.n > 0:
				s.endSentence()
				return sentence, nil
			}
			return text, nil
		}
		r, size := rune(s.buf[s.from]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(s.buf[s.from:s.to])
		}
		if r == 0 {
			return text, errNUL
		}
		if r == utf8.RuneError && size == 1 {
			s.replaced++
			s.addReplaced()
			s.from++
			continue
		}
		if s.add(r, s.buf[s.from:s.from+size]) {
			s.from += size
			continue
		}
		if s.ends() {
			return word, nil // what ended it is scanned again
		}
		s.from += size
		if s.separate(r) && s.n > 0 {
			s.endSentence()
			return sentence, nil
		}
	}
}

// add makes a character part of the word, if it can be.
func (s *scanner) add(r rune, raw []byte) bool {
	if s.format == Lines {
		if isBlank(r) {
			return false
		}
	} else {
		switch {
		case r < utf8.RuneSelf && s.plain[r] != 0: // after the end of the buffer, or too many
			r, s.apostrophe = rune(s.plain[r]), false
		case (r == '\'' || r == '’') && len(s.word) > 0 && !s.apostrophe:
			r, s.apostrophe = '\'', true
		case r >= utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r)):
			r, s.apostrophe = unicode.ToLower(r), false
		default:
			return false
		}
	}
	switch {
	case len(s.word) >= MaxWord:
		s.tooLong = true
	case s.format == Lines:
		s.word = append(s.word, raw...)
	default:
		s.word = utf8.AppendRune(s.word, r)
	}
	return true
}

// addReplaced makes U+FFFD part of the word, in the place of a byte that is not UTF-8.
func (s *scanner) addReplaced() {
	if s.apostrophe = false; len(s.word) >= MaxWord {
		s.tooLong = true
		return
	}
	s.word = utf8.AppendRune(s.word, utf8.RuneError)
}

func isBlank(r rune) bool {
	return r == ' ' || r >= '\t' && r <= '\r' || r >= utf8.RuneSelf && unicode.IsSpace(r) || r == '\ufeff'
}

// ends ends the word, if there is one.
func (s *scanner) ends() bool {
	if s.apostrophe && !s.tooLong {
		s.word = bytes.TrimSuffix(s.word, []byte{'\''})
	}
	if s.tooLong || len(s.word) > MaxWord {
		s.longWords++
		s.word, s.tooLong, s.apostrophe = s.word[:0], false, false
		s.empty = false
		return false
	}
	if len(s.word) == 0 {
		return false
	}
	s.n++
	s.empty = false
	return true
}

// separate takes a character that is part of no word, and reports whether it
// ends the sentence.
func (s *scanner) separate(r rune) bool {
	switch {
	case r == '\n':
		s.line++
		if s.format == Lines || s.empty {
			return true
		}
		s.empty = true
	case !isBlank(r):
		s.empty = false
	}
	return false
}
