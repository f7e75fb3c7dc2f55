// Package bagofwords holds documents as bags of numbered words, as topic models train
// on them.
//
// [Load] splits a text into documents, and [Generate] makes documents of known topics.
package bagofwords

import (
	"fmt"

	"github.com/godwit-ps/godwit/internal/plural"
)

// A Set is documents, one after the other: document i has the words
// Words[Starts[i]:Starts[i+1]], numbers into Names. It is plain data: any number
// of goroutines may read it while none changes it.
type Set struct {
	Names  []string // the vocabulary: word n is Names[n]
	Words  []int32  // the words of all documents, 0 … len(Names)-1; one that occurs twice is listed twice
	Starts []int    // one more than documents; Starts[0] is 0
	// Replaced is how many bytes of the text were not UTF-8; U+FFFD is in their place.
	Replaced int64
}

// Len returns the number of documents.
func (s *Set) Len() int { return max(len(s.Starts)-1, 0) }

// Doc returns the words of document i, which belong to the set.
func (s *Set) Doc(i int) []int32 {
	from, to := s.Starts[i], s.Starts[i+1]
	return s.Words[from:to:to]
}

// Append adds a document.
func (s *Set) Append(words []int32) {
	if len(s.Starts) == 0 {
		s.Starts = append(s.Starts, 0)
	}
	s.Words = append(s.Words, words...)
	s.Starts = append(s.Starts, len(s.Words))
}

// Split divides the documents into two sets with the same vocabulary: every nth document, the
// first one first, goes to the second set.
func (s *Set) Split(n int) (rest, held *Set) {
	rest, held = &Set{Names: s.Names}, &Set{Names: s.Names}
	for i := range s.Len() {
		if i%n == 0 {
			held.Append(s.Doc(i))
		} else {
			rest.Append(s.Doc(i))
		}
	}
	return rest, held
}

// Pick returns the documents of some numbers.
func (s *Set) Pick(docs []int) *Set {
	some := &Set{Names: s.Names}
	for _, i := range docs {
		some.Append(s.Doc(i))
	}
	return some
}

// Check returns an error if the fields are inconsistent. Sets that this package made are
// valid.
func (s *Set) Check() error {
	switch {
	case len(s.Starts) == 0 && len(s.Words) > 0:
		return fmt.Errorf("bagofwords: %d words without documents", len(s.Words))
	case len(s.Starts) > 0 && (s.Starts[0] != 0 || s.Starts[len(s.Starts)-1] != len(s.Words)):
		return fmt.Errorf("bagofwords: documents from %d to %d of %d words", s.Starts[0], s.Starts[len(s.Starts)-1], len(s.Words))
	}
	for i := range s.Len() {
		if s.Starts[i] > s.Starts[i+1] {
			return fmt.Errorf("bagofwords: document %d ends before it starts", i)
		}
	}
	for i, w := range s.Words {
		if w < 0 || int(w) >= len(s.Names) {
			return fmt.Errorf("bagofwords: word %d at position %d, there are %d names", w, i, len(s.Names))
		}
	}
	return nil
}

// String returns a line for people.
func (s *Set) String() string {
	return fmt.Sprintf("%s of %s, %d different", plural.Of(s.Len(), "document"), plural.Of(len(s.Words), "word"), len(s.Names))
}
