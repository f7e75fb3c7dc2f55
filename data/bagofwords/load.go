package bagofwords

import (
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit/data/corpus"

	"github.com/godwit-ps/godwit/data/setting"
)

// Options say how a text becomes documents.
type Options struct {
	// Format is that of the text; empty means corpus.Prose.
	Format corpus.Format
	// Documents is Cut or Line; empty means Cut. A file of counts has its own documents.
	Documents string
	// Length is the least number of words of a document, but for the last of a
	// file, of those that the text has, 1 … corpus.MaxBlock. It ends with a
	// sentence (see package corpus).
	Length int
	// MinCount is how often a word must occur in the text to be used, at least 1.
	MinCount int64
	// Skip is how many of the most frequent words are not used, since they do not
	// characterize topics.
	Skip int
	// Most is how many words are used at the most, the most frequent ones of those
	// that Skip and MinCount leave; 0 is any number.
	Most int
}

// DefaultOptions are meant for prose.
func DefaultOptions() Options {
	return Options{Format: corpus.Prose, Documents: Cut, Length: 500, MinCount: 20, Skip: 500, Most: 20_000}
}

// Check returns what is wrong with the options.
func (o Options) Check() error {
	switch {
	case o.Documents != "" && o.Documents != Cut && o.Documents != Line:
		return setting.Bad("bagofwords.Options", "Documents", fmt.Sprintf("%q", o.Documents), Cut+" or "+Line)
	case o.Skip < 0:
		return setting.Bad("bagofwords.Options", "Skip", o.Skip, "0 or more words")
	case o.Most < 0:
		return setting.Bad("bagofwords.Options", "Most", o.Most, "0 (any number) or more words")
	}
	return o.corpus().Check()
}

func (o Options) corpus() corpus.Options {
	return corpus.Options{Format: o.Format, MinCount: o.MinCount, Block: o.Length}
}

// Load reads documents into memory: 4 bytes for each word that is used. A path is a file
// or folder of text (see [corpus.Open]), or a file of counts, or a folder with one:
//
//   - docword.NAME.txt, as the UCI repository has bags of words, with the words in
//     vocab.NAME.txt beside it
//   - NAME.mtx or NAME.mmc in the coordinate format of Matrix Market, a row a document and a
//     column a word, with the words in NAME.vocab.txt beside it
//
// each also as .gz. Words without a file of them are called by their numbers.
func Load(path string, o Options) (set *Set, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	switch m, ok, err := findMatrix(path); {
	case err != nil:
		return nil, err
	case ok:
		return m.load(o)
	case o.Documents == Line:
		return loadLines(path, o)
	}
	c, err := corpus.Open(path, o.corpus())
	if err != nil {
		return nil, err
	}
	set, err = cut(c, o)
	if err == nil && len(set.Words) == 0 {
		err = fmt.Errorf("bagofwords: no words of %s are left: of %d that occur %d times or more, %d are skipped (--min-count, --skip): demand less of them", path, len(c.Vocabulary.Words), o.MinCount, o.Skip)
	}
	return set, err
}

// Counted reports whether there are the counts of documents at a path, and no text.
func Counted(path string) (bool, error) {
	_, ok, err := findMatrix(path)
	return ok, err
}

// cut makes a document of each block. Words are numbered by falling frequency,
// so what is skipped is what comes first.
func cut(c *corpus.Corpus, o Options) (set *Set, err error) {
	names := c.Vocabulary.Words
	names = names[min(o.Skip, len(names)):]
	if o.Most > 0 {
		names = names[:min(o.Most, len(names))]
	}
	set = &Set{Names: names, Replaced: c.Stats.Replaced}
	r := c.Reader()
	defer func() { err = errors.Join(err, r.Close()) }()
	var t corpus.Text
	for b := range c.Blocks() {
		if err := r.Read(b, &t); err != nil {
			return nil, err
		}
		kept := t.Words[:0]
		for _, w := range t.Words {
			if w -= int32(o.Skip); w >= 0 && int(w) < len(names) {
				kept = append(kept, w)
			}
		}
		if len(kept) > 0 {
			set.Append(kept)
		}
	}
	return set, nil
}
