package lda

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/npy"
)

// The files that [Task.Export] writes.
const (
	CountFile = "counts.npy"
	WordFile  = "words.txt"
	TopicFile = "topics.txt"
)

// exportFloats bounds what is pulled at once.
const exportFloats = 1 << 18

// topWords is how many words of a topic are written.
const topWords = 20

// Export writes the model into dir, which it makes where needed: the counts as a
// NumPy array of float32, a row for each word and a column for each topic; the
// words, one on each line; and on a line for each topic its words, the most
// frequent first, to be read.
//
// Each file appears complete or not at all. One node of the run calls it, with
// a worker that nothing else uses meanwhile, after [train.Run].
func (t *Task) Export(ctx context.Context, w godwit.Worker, dir string) error {
	k, err := t.keys(w.Model())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("lda: export: %w", err)
	}
	tops, err := t.writeCounts(ctx, w, k, filepath.Join(dir, CountFile))
	if err != nil {
		return fmt.Errorf("lda: export: %w", err)
	}
	var topics []string
	for _, top := range tops {
		topics = append(topics, strings.Join(t.namesOf(top), " "))
	}
	err = errors.Join(writeLines(filepath.Join(dir, WordFile), t.docs.Names), writeLines(filepath.Join(dir, TopicFile), topics))
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

// writeCounts writes the table of words and returns the most frequent ones of
// each topic.
func (t *Task) writeCounts(ctx context.Context, w godwit.Worker, k keys, path string) (tops [][]counted, err error) {
	out, err := npy.Create(path, t.words, t.cfg.Topics)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	tops = make([][]counted, t.cfg.Topics)
	block := max(1, exportFloats/t.cfg.Topics)
	var ks []godwit.Key
	var vals []float32
	for from := 0; from < t.words; from += block {
		ks = ks[:0]
		for i := from; i < min(from+block, t.words); i++ {
			ks = append(ks, k.word+godwit.Key(i))
		}
		vals = sized(vals, len(ks)*t.cfg.Topics)
		if err := w.Pull(ctx, ks, vals); err != nil {
			return nil, err
		}
		if err := out.WriteRows(vals); err != nil {
			return nil, err
		}
		for i, n := range vals {
			if n > 0 {
				z := i % t.cfg.Topics
				tops[z] = keep(tops[z], counted{from + i/t.cfg.Topics, n})
			}
		}
	}
	return tops, nil
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

// writeLines writes a text on each line: the file appears complete or not at
// all, since what is written is a temporary file beside it.
func writeLines(path string, lines []string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	for _, l := range lines {
		if _, err = out.WriteString(l + "\n"); err != nil {
			break
		}
	}
	err = errors.Join(err, out.Flush(), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is of no use, and may be gone
	}
	return err
}
