package task

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/bagofwords"
	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/internal/plural"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/lda"
)

// Import implements [train.Importer].
func (t *topicsTask) Import(src export.Source) ([]train.Rows, error) { return t.lda.Import(src) }

// Continue implements [train.Continuer].
func (t *topicsTask) Continue(src export.Source, node int) error { return t.lda.Continue(src, node) }

// Reload implements [Reusable]: documents consist of the model's words.
func (s *LDA) Reload(src export.Source, u Use, seed uint64) (Reloaded, error) {
	words, err := lda.Names(src)
	if err != nil {
		return nil, err
	}
	m := &topicsModel{numbers: make(map[string]int, len(words)), split: corpus.NewSplitter(s.Text.Format), top: u.Top}
	for i, w := range words {
		m.numbers[w] = i
	}
	held := &bagofwords.Set{Names: words}
	if u.Test != "" {
		o := s.Text
		o.MinCount, o.Skip, o.Most = 1, 0, 0 // the model's words, however rare they are here
		all, err := bagofwords.Load(u.Test, o)
		if err != nil {
			return nil, err
		}
		held, m.lacking = all.Onto(words, m.number)
		if len(held.Words) == 0 {
			return nil, errNoTest(u.Test, "word of its")
		}
	}
	cfg := s.Config
	cfg.Seed = seed
	t, err := lda.Reload(cfg, held)
	if err != nil {
		return nil, err
	}
	m.topicsTask = topicsTask{Trained[lda.Batch]{Task: t}, t, &bagofwords.Set{Names: words}, held, 0}
	return m, nil
}

// A topicsModel is a trained model of the task "lda".
type topicsModel struct {
	topicsTask
	numbers map[string]int
	split   *corpus.Splitter
	top     int
	lacking int // words of the documents to test that the model lacks
}

func (m *topicsModel) number(name string) (int, bool) { n, ok := m.numbers[name]; return n, ok }

// Summary implements [Reloaded].
func (m *topicsModel) Summary() string {
	return fmt.Sprintf("%s of %s", plural.Of(m.held.Len(), "document"), plural.Of(len(m.held.Words), "word"))
}

// Warnings implements [Reloaded].
func (m *topicsModel) Warnings() []string {
	return left(m.lacking, "words", "the model does not have them")
}

// A share is that of a topic in a document.
type share struct {
	Topic int     `json:"topic"` // from 0 on
	Share float64 `json:"share"`
}

// topics are those of a document, the largest share first.
type topics struct {
	Words  int     `json:"words"` // of the document, that the model has
	Topics []share `json:"topics"`
}

// Text implements [Answer]: topics and shares in turn.
func (t topics) Text() []string {
	var fields []string
	for _, x := range t.Topics {
		fields = append(fields, fmt.Sprintf("%d\t%.6g", x.Topic, x.Share))
	}
	return []string{strings.Join(fields, "\t")}
}

// Answer implements [Reloaded]: each line is a document.
func (m *topicsModel) Answer(ctx context.Context, w godwit.Worker, lines [][]byte) ([]Answer, error) {
	set := &bagofwords.Set{Names: m.held.Names}
	var failed error
	for i, line := range lines {
		words, err := m.split.Words(line)
		if err != nil {
			failed, lines = &LineError{i, err}, lines[:i]
			break
		}
		var doc []int32
		for _, word := range words {
			if n, ok := m.numbers[word]; ok {
				doc = append(doc, int32(n))
			}
		}
		set.Append(doc)
	}
	all, err := m.lda.Infer(ctx, w, set)
	if err != nil {
		return nil, err
	}
	answers := make([]Answer, len(lines))
	for i, shares := range all {
		answers[i] = m.answer(len(set.Doc(i)), shares)
	}
	return answers, failed
}

func (m *topicsModel) answer(words int, shares []float64) Answer {
	if words == 0 {
		return Unknown{"the document has no word that the model has"}
	}
	t := topics{Words: words}
	for z, x := range shares {
		t.Topics = append(t.Topics, share{z, x})
	}
	slices.SortStableFunc(t.Topics, func(a, b share) int { return cmp.Compare(b.Share, a.Share) })
	t.Topics = t.Topics[:min(m.top, len(t.Topics))]
	return t
}
