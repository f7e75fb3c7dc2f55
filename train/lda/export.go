package lda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// The files that [Task.Export] writes.
const (
	CountFile = "counts.npy"
	WordFile  = "words.txt"
	TopicFile = "topics.txt"
)

// topWords is how many words of a topic are written.
const topWords = 20

// Export writes the model: the counts as a NumPy array of float32, a row for each
// word and a column for each topic; the words, one on each line; and on a line for
// each topic its words, the most frequent first, to be read.
//
// One node of the run calls it, with a worker that nothing else uses meanwhile, after
// [train.Run].
func (t *Task) Export(ctx context.Context, w godwit.Worker, s *export.Set) error {
	k, err := t.keys(w.Model())
	if err != nil {
		return err
	}
	s.Model.Model, s.Model.Dim = "lda", t.cfg.Topics
	s.Model.Score = fmt.Sprintf("p(word | topic) = (counts + %v) / (counts.sum(0) + %v*len(counts))", t.cfg.Beta, t.cfg.Beta)
	counts := tables.Array{File: CountFile, Names: WordFile, Layout: "how often the word belongs to each topic", First: k.word, Rows: t.words, Dim: t.cfg.Topics, Cols: t.cfg.Topics}
	if err := counts.Write(ctx, w, s); err != nil {
		return fmt.Errorf("lda: export: %w", err)
	}
	tops, err := t.tops(ctx, w, k)
	if err != nil {
		return fmt.Errorf("lda: export: %w", err)
	}
	var topics []string
	for _, top := range tops {
		topics = append(topics, strings.Join(t.namesOf(top), " "))
	}
	err = errors.Join(tables.WriteLines(s, WordFile, "words", slices.Values(t.docs.Names)),
		tables.WriteLines(s, TopicFile, "for each topic its most frequent words", slices.Values(topics)))
	if err != nil {
		return fmt.Errorf("lda: export: %w", err)
	}
	return nil
}

// A counted word.
type counted struct {
	word  int
	count float32
}

func (t *Task) namesOf(top []counted) []string {
	var names []string
	for _, c := range top {
		names = append(names, t.docs.Names[c.word])
	}
	return names
}

// tops returns the most frequent words of each topic.
func (t *Task) tops(ctx context.Context, w godwit.Worker, k keys) ([][]counted, error) {
	tops := make([][]counted, t.cfg.Topics)
	err := tables.Read(ctx, w, k.word, t.words, t.cfg.Topics, func(at int, vals []float32) error {
		for i, n := range vals {
			if n > 0 {
				z := i % t.cfg.Topics
				tops[z] = keep(tops[z], counted{at + i/t.cfg.Topics, n})
			}
		}
		return nil
	})
	return tops, err
}

// keep inserts a word into the most frequent ones, which are in order.
func keep(top []counted, c counted) []counted {
	i, _ := slices.BinarySearchFunc(top, c, func(a, b counted) int {
		switch {
		case a.count > b.count || a.count == b.count && a.word < b.word:
			return -1
		case a == b:
			return 0
		}
		return 1
	})
	if i == topWords {
		return top
	}
	top = slices.Insert(top, i, c)
	return top[:min(len(top), topWords)]
}
