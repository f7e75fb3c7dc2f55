package task

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/sketch"
)

// Import implements [train.Importer].
func (t *streamTask) Import(src export.Source) ([]train.Rows, error) { return t.sketch.Import(src) }

// Continue implements [train.Continuer].
func (t *streamTask) Continue(src export.Source, node int) error { return t.sketch.Continue(src, node) }

// Reload implements [Reusable].
func (s *Sketch) Reload(src export.Source, u Use, seed uint64) (Reloaded, error) {
	if u.Test != "" {
		return nil, errors.New("sketch: a sketch is evaluated on the stream that it has counted, and on no other: name it by --data if it is not where it was")
	}
	cfg := s.Config
	cfg.Seed = seed
	// No stream is left, and a task has one.
	t, err := sketch.New(cfg, &sketch.Stream{Items: []uint64{0}})
	if err != nil {
		return nil, err
	}
	m := &streamModel{streamTask: streamTask{Trained[sketch.Batch]{Task: t}, t, cfg, 0, "", 0}}
	if run := src.Describe().Run; run == nil || run.Data.Path != "" { // words, not numbers
		m.split = corpus.NewSplitter(s.Text.Format)
	}
	return m, nil
}

// A streamModel is a sketch that counted a stream.
type streamModel struct {
	streamTask
	split *corpus.Splitter // nil: items are numbers
}

// Summary implements [Reloaded].
func (m *streamModel) Summary() string {
	return fmt.Sprintf("%d rows of %d cells", m.cfg.Depth, m.cfg.Width)
}

// A count is an answer: about how often an item occurred, and no less often.
type count struct {
	Item  string `json:"item"`
	Count int64  `json:"count"`
}

// Text implements [Answer].
func (c count) Text() []string { return []string{fmt.Sprintf("%s\t%d", c.Item, c.Count)} }

// Answer implements [Reloaded]: each line is an item.
func (m *streamModel) Answer(ctx context.Context, w godwit.Worker, lines [][]byte) ([]Answer, error) {
	c, err := m.cfg.On(w)
	if err != nil {
		return nil, err
	}
	return answerEach(lines, func(line []byte) (Answer, error) {
		name, item, err := m.item(line)
		if err != nil {
			return nil, err
		}
		var n [1]int64
		err = c.Estimate(ctx, []uint64{item}, n[:])
		return count{name, n[0]}, err
	})
}

// item returns the item of a line.
func (m *streamModel) item(line []byte) (name string, item uint64, err error) {
	if m.split == nil {
		name = strings.TrimSpace(string(line))
		if item, err = strconv.ParseUint(name, 10, 64); err != nil {
			return name, 0, fmt.Errorf("%.60q is no number, and the items of a generated stream are numbers", name)
		}
		return name, item, nil
	}
	words, err := m.split.Words(line)
	if err == nil && len(words) != 1 {
		err = fmt.Errorf("%d words, want the one that is to be looked up", len(words))
	}
	if err != nil {
		return "", 0, err
	}
	return words[0], wordItem(words[0]), nil
}

// wordItem is the item that a word is in a stream.
func wordItem(word string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(word))
	return h.Sum64()
}
