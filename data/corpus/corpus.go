package corpus

import (
	"fmt"
	"io"
	"sort"

	"github.com/godwit-ps/godwit/data/fingerprint"
	"github.com/godwit-ps/godwit/data/setting"
	"github.com/godwit-ps/godwit/internal/plural"
)

// Options say how text is split into words, and which words are used.
type Options struct {
	// Format is Prose or Lines; empty means Prose.
	Format Format
	// MinCount is how often a word must occur to be one of the vocabulary, at
	// least 1. Rarer ones are ignored.
	MinCount int64
	// Block is the number of words of a block, 1 … MaxBlock.
	Block int
}

// MaxBlock bounds the words of a block.
const MaxBlock = 1 << 20

// Check returns what is wrong with the options.
func (o Options) Check() error {
	switch {
	case o.MinCount < 1:
		return setting.Bad("corpus.Options", "MinCount", o.MinCount, "at least 1")
	case o.Block < 1 || o.Block > MaxBlock:
		return setting.Bad("corpus.Options", "Block", o.Block, fmt.Sprintf("1 … %d words", MaxBlock))
	case o.Format == "":
		return nil
	}
	return o.Format.Check()
}

// Stats are what Open found.
type Stats struct {
	Files int // that were read
	// Words is how many there are, also of those that are too rare.
	Words     int64
	Distinct  int   // different words among them
	LongWords int64 // left out because they are longer than MaxWord
	Replaced  int64 // bytes that are not UTF-8: U+FFFD is in their place
	// Floor is 0 unless there were more different words than can be counted. Then a
	// count may be too low by up to Floor.
	Floor int64
}

// A Corpus is text that was counted. It does not change, and may be used by any
// number of goroutines, each with a [Reader] of its own.
type Corpus struct {
	// Vocabulary has the words that are frequent enough ([Options.MinCount]).
	Vocabulary *Vocabulary
	// Stats count all that was read.
	Stats Stats

	options Options
	files   []source
	first   []int            // first[i] is the first block of files[i]; last element: all
	starts  []int64          // of each block, in the text of its file
	hash    fingerprint.Hash // of all text
}

// Open counts the words of a file, or of the files of a folder.
func Open(path string, o Options) (*Corpus, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	files, err := sources(path)
	if err != nil {
		return nil, err
	}
	return count(files, o, maxDistinct)
}

// FromText counts the words of a text in memory, which must not change.
func FromText(name string, text []byte, o Options) (*Corpus, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return count([]source{{name: name, text: text}}, o, maxDistinct)
}

func count(files []source, o Options, distinct int) (*Corpus, error) {
	if o.Format == "" {
		o.Format = Prose
	}
	c := &Corpus{options: o, files: files}
	words := newCounter(distinct)
	s := newScanner(o.Format, o.Block)
	for i := range files {
		c.first = append(c.first, len(c.starts))
		if err := c.countFile(&files[i], s, words); err != nil {
			return nil, err
		}
	}
	c.first = append(c.first, len(c.starts))
	c.Vocabulary = words.vocabulary(o.MinCount)
	c.Stats.Files, c.Stats.LongWords, c.Stats.Distinct, c.Stats.Floor = len(files), s.longWords, len(words.words), words.floor
	c.Stats.Replaced = s.replaced
	if c.Stats.Words == 0 && c.Stats.LongWords == 0 {
		return nil, fmt.Errorf("corpus: %s holds no words", of(files))
	}
	if len(c.Vocabulary.Words) == 0 {
		return nil, fmt.Errorf("corpus: %s: none of %d different words occurs %d times; give more text or a smaller least count", of(files), c.Stats.Distinct, o.MinCount)
	}
	return c, nil
}

// of names the files of an error.
func of(files []source) string {
	if n := len(files) - 1; n > 0 {
		return fmt.Sprintf("%s and %d more", files[0].name, n)
	}
	return files[0].name
}

func (c *Corpus) countFile(file *source, s *scanner, words *counter) error {
	in, err := file.open()
	if err != nil {
		return err
	}
	defer in.Close()
	s.reset(io.TeeReader(in, &c.hash), 0)
	block := 0 // words of it
	for {
		at := s.position()
		t, err := s.next()
		if err != nil {
			return fmt.Errorf("corpus: %s, line %d: %w", file.name, s.line+1, err)
		}
		switch {
		case t == text:
			return nil
		case t == word:
			if block == 0 {
				c.starts = append(c.starts, at)
			}
			words.add(s.word)
			block++
			c.Stats.Words++
		case block >= c.options.Block:
			block = 0
		}
	}
}

// Blocks returns the number of blocks.
func (c *Corpus) Blocks() int { return len(c.starts) }

// file returns the file of a block.
func (c *Corpus) file(block int) int {
	return sort.Search(len(c.files), func(i int) bool { return c.first[i+1] > block })
}

// Fingerprint is equal for corpora of equal texts that are read in the same way.
func (c *Corpus) Fingerprint() string {
	h := c.hash
	h.Texts(c.Vocabulary.Words)
	h.Number(c.Blocks())
	return h.String()
}

// Warnings returns properties of the text that may spoil what is learned from it, a
// sentence each.
func (c *Corpus) Warnings() []string { return ReplacedWarning(c.Stats.Replaced) }

// ReplacedWarning is a warning about bytes that are not UTF-8; none if there are none.
func ReplacedWarning(bytes int64) []string {
	if bytes == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s not valid UTF-8: U+FFFD is in their place; iconv -t utf-8 converts a text of another encoding", plural.Of(bytes, "byte of the text is", "bytes of the text are"))}
}

// String returns a line for people.
func (c *Corpus) String() string {
	s := fmt.Sprintf("%d words, %d different, %d of these at least %d times", c.Stats.Words, c.Stats.Distinct, len(c.Vocabulary.Words), c.options.MinCount)
	if n := c.Stats.LongWords; n > 0 {
		s += fmt.Sprintf("; %d longer than %d bytes left out", n, MaxWord)
	}
	if f := c.Stats.Floor; f > 0 {
		s += fmt.Sprintf("; too many different words to count, up to %d occurrences of rare ones are not", f)
	}
	return s
}
