package lda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/bagofwords"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// The names of the tables.
const (
	WordTable  = "word"
	TopicTable = "topic"
	// AssignedTable has the topic of each word of each document.
	AssignedTable = "assigned"
)

const (
	// exact is the largest count that float32 sums hold exactly.
	exact = 1 << 24
	// perRow is how many words are counted in a row of the topics.
	perRow = 1 << 23
	// perAssigned is of how many words a row of the assigned topics is.
	perAssigned = 256
)

// A Task trains topics. It implements [train.Task]. It may be used by any number of
// goroutines.
type Task struct {
	cfg   Config
	docs  *bagofwords.Set
	held  *bagofwords.Set
	rows  int // of the topics
	words int
	steps []int // step i has the documents steps[i] … steps[i+1]-1
	// numberings are those of the steps that were loaded in this process.
	numberings []atomic.Pointer[numbering]
	// before is how many words the model counts that was taken over; 0 without one.
	before   atomic.Int64
	beforeAt atomic.Int64 // the node that took it over
}

// New checks the settings, the documents to train on and those held out for
// evaluations, which are of the same words and must not change afterwards.
func New(cfg Config, docs, held *bagofwords.Set) (*Task, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	for _, s := range []*bagofwords.Set{docs, held} {
		if err := s.Check(); err != nil {
			return nil, fmt.Errorf("lda: %w", err)
		}
	}
	if !slices.Equal(docs.Names, held.Names) {
		return nil, errors.New("lda: the documents held out are not of the same words")
	}
	if len(docs.Words) == 0 {
		return nil, errors.New("lda: there are no words to train")
	}
	if err := checkCounts(docs, exact); err != nil {
		return nil, err
	}
	t := &Task{cfg: cfg, docs: docs, held: held, rows: 1 + len(docs.Words)/perRow, words: len(docs.Names), steps: []int{0}}
	batch := cfg.batch(len(docs.Words))
	for d := range docs.Len() {
		if docs.Starts[d+1]-docs.Starts[t.steps[len(t.steps)-1]] >= batch || d == docs.Len()-1 {
			t.steps = append(t.steps, d+1)
		}
	}
	t.numberings = make([]atomic.Pointer[numbering], len(t.steps)-1)
	return t, nil
}

// checkCounts refuses documents that could not be counted exactly.
func checkCounts(docs *bagofwords.Set, most int) error {
	count := make([]int, len(docs.Names))
	for _, w := range docs.Words {
		count[w]++
	}
	for w, n := range count {
		if n > most {
			return fmt.Errorf("lda: the word %q occurs %d times, and no more than %d can be counted exactly: skip the most frequent words", docs.Names[w], n, most)
		}
	}
	for i := range docs.Len() {
		if n := len(docs.Doc(i)); n > most-perRow {
			return fmt.Errorf("lda: document %d has %d words, and no more than %d can be counted exactly: split it", i, n, most-perRow)
		}
	}
	return nil
}

// row is the row of the topics that counts the words of a document.
func (t *Task) row(doc int) int { return t.docs.Starts[doc] / perRow }

// Tables describes the tables that the task trains, for [godwit.NewModel]. The
// model may have other tables beside.
func (t *Task) Tables() []godwit.Table {
	return []godwit.Table{
		{Name: WordTable, Rows: uint64(t.words), Dim: t.cfg.Topics, Counts: true, Relaxed: true},
		{Name: TopicTable, Rows: uint64(t.rows), Dim: t.cfg.Topics, Counts: true, Relaxed: true},
		{Name: AssignedTable, Rows: uint64(t.assigned()), Dim: perAssigned * t.digits(), Counts: true},
	}
}

// assigned is the number of rows with the topics of words.
func (t *Task) assigned() int { return 1 + len(t.docs.Words)/perAssigned }

// digits is how many floats a word's topic takes: one more than its number, in digits of 8
// bits, so that a push has small numbers; 0 is none.
func (t *Task) digits() int {
	if t.cfg.Topics < 256 {
		return 1
	}
	return 2
}

// Fingerprint names settings and documents.
func (t *Task) Fingerprint() string {
	return fmt.Sprintf("lda %+v on %v (%s), %v held out (%s)", t.cfg, t.docs, t.docs.Fingerprint(), t.held, t.held.Fingerprint())
}

// Chunks implements [train.Task]. A chunk is documents one after the other.
func (t *Task) Chunks() int {
	n, _ := schedule.Cut(len(t.steps) - 1)
	return n
}

// Handover implements [train.Handover]: a word's topic is in a row.
func (t *Task) Handover() bool { return true }

// Trainer returns a worker's trainer.
func (t *Task) Trainer(w godwit.Worker, _ train.Partition) (train.Trainer[Batch], error) {
	k, err := t.keys(w.Model())
	if err != nil {
		return nil, err
	}
	return newTrainer(t, w, k), nil
}

// Evaluate evaluates the model by the documents that are held out, or those of
// training where there are none, and checks its counts.
func (t *Task) Evaluate(ctx context.Context, env *train.Env, epoch int) (train.Evaluation, error) {
	set, split := t.held, "test"
	if len(set.Words) == 0 {
		set, split = t.docs, "train"
	}
	q, err := t.EvaluateOn(ctx, env, fmt.Sprintf("%s after epoch %d", split, epoch), set)
	if err != nil {
		return train.Evaluation{}, err
	}
	ev := train.Evaluation{LowerIsBetter: true, Metrics: []train.Metric{{Name: "perplexity", Split: split, Value: q.Perplexity}}}
	if q.Words == 0 {
		ev.Warnings = append(ev.Warnings, "no document to evaluate by has two words, one to predict from the other, so there is no perplexity: give more text, or make longer documents (--length)")
	}
	switch err := t.Check(ctx, env, fmt.Sprintf("after epoch %d", epoch)); {
	case errors.Is(err, ErrCounts):
		ev.Warnings = append(ev.Warnings, err.Error())
	case err != nil:
		return train.Evaluation{}, err
	}
	return ev, nil
}

// keys are the tables' first keys.
type keys struct{ word, topic, assigned godwit.Key }

// keys finds the task's tables in a model.
func (t *Task) keys(m *godwit.Model) (keys, error) {
	first, err := tables.Find(m, t.Tables())
	if err != nil {
		return keys{}, fmt.Errorf("lda: %w", err)
	}
	return keys{first[0], first[1], first[2]}, nil
}
