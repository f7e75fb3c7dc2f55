package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/wordvec"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/w2v"
)

// Import implements [train.Importer].
func (t *textTask) Import(src export.Source) ([]train.Rows, error) { return t.w2v.Import(src) }

// Reload implements [Reusable]: the file to test on has questions.
func (s *W2V) Reload(src export.Source, u Use, _ uint64) (Reloaded, error) {
	v, err := src.Array(w2v.ArrayFile)
	if err != nil {
		return nil, err
	}
	names, err := src.Lines(w2v.WordFile)
	if err != nil {
		return nil, err
	}
	wordvec.Normalize(v.Floats, v.Cols)
	m := &wordsModel{restrict: s.Restrict, lower: !slices.ContainsFunc(names, func(n string) bool { return n != strings.ToLower(n) }), top: u.Top}
	if m.vectors, err = wordvec.New(names, v.Cols, v.Floats); err != nil {
		return nil, err
	}
	if u.Test == "" {
		return m, nil
	}
	if m.questions, err = wordvec.ReadQuestions(u.Test, m.lower); err != nil {
		return nil, err
	}
	m.known = m.questions.Known(func(word string) (int32, bool) { id, ok := m.vectors.ID(word); return int32(id), ok }, m.restrict)
	if len(m.known) == 0 {
		return nil, errNoTest(u.Test, "question with only words")
	}
	return m, nil
}

// A wordsModel is trained word vectors, which are of length 1.
type wordsModel struct {
	vectors   *wordvec.Vectors
	questions *wordvec.Questions // nil: none
	known     []wordvec.Known
	restrict  int
	lower     bool // whether all words are in lower case
	top       int
}

// Import implements [train.Importer]: the vectors are here already.
func (m *wordsModel) Import(export.Source) ([]train.Rows, error) {
	return []train.Rows{func(row uint64, dst []float32) bool { copy(dst, m.vectors.Vector(int(row))); return true }}, nil
}

// Tables implements [Reloaded].
func (m *wordsModel) Tables() []godwit.Table {
	return []godwit.Table{{Name: w2v.InputTable, Rows: uint64(len(m.vectors.Names)), Dim: m.vectors.Dim}}
}

// Summary implements [Reloaded].
func (m *wordsModel) Summary() string {
	return fmt.Sprintf("%d questions with only words among the %d most frequent", len(m.known), min(m.restrict, len(m.vectors.Names)))
}

// Warnings implements [Reloaded].
func (m *wordsModel) Warnings() []string { return nil }

// Test implements [Reloaded].
func (m *wordsModel) Test(context.Context, *train.Env, string, bool) ([]train.Metric, error) {
	if m.questions == nil {
		return nil, errors.New("w2v: there are no questions to evaluate the vectors by")
	}
	right := make([]int64, len(m.questions.Sections))
	n := min(m.restrict, len(m.vectors.Names))
	wordvec.Answer(m.vectors.Vals[:n*m.vectors.Dim], m.vectors.Dim, m.known, right)
	return w2v.Quality{Score: m.questions.Score(m.known, right)}.Metrics(), nil
}

// nearest are the words that are nearest to a word, or to B - A + C.
type nearest struct {
	Of      []string            `json:"of"`
	Nearest []wordvec.Neighbour `json:"nearest"`
}

// Text implements [Answer].
func (n nearest) Text() (texts []string) {
	for _, x := range n.Nearest {
		texts = append(texts, fmt.Sprintf("%s\t%s\t%.6g", strings.Join(n.Of, " "), x.Name, x.Cosine))
	}
	return texts
}

// Answer implements [Reloaded]: a line is a word, or three words A B C, which ask what is
// to C as B is to A.
func (m *wordsModel) Answer(_ context.Context, _ godwit.Worker, lines [][]byte) ([]Answer, error) {
	return answerEach(lines, func(line []byte) (Answer, error) {
		text := string(line)
		if m.lower {
			text = strings.ToLower(text)
		}
		words := strings.Fields(text)
		if len(words) != 1 && len(words) != 3 {
			return nil, fmt.Errorf("%d words, want one, or three that begin an analogy, as in \"man king woman\"", len(words))
		}
		ids := make([]int, len(words))
		for i, word := range words {
			var ok bool
			if ids[i], ok = m.vectors.ID(word); !ok {
				return Unknown{fmt.Sprintf("%q is none of the model's words", word)}, nil
			}
		}
		if len(ids) == 1 {
			return nearest{words, m.vectors.Nearest(m.vectors.Vector(ids[0]), m.top, ids[0])}, nil
		}
		return nearest{words, m.vectors.Analogy(ids[0], ids[1], ids[2], m.top)}, nil
	})
}
