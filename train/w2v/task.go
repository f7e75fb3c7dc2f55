package w2v

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/data/wordvec"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// The names of the tables. A word has the same row in both.
const (
	InputTable  = "input"  // the vectors that are exported
	OutputTable = "output" // those that predict
)

// Exponent is the power of words' frequencies by which negatives are drawn.
const Exponent = 0.75

// A Task trains the vectors of the words of a corpus. It implements
// [train.Task]. It is immutable and may be used by any number of goroutines.
type Task struct {
	cfg       Config
	corpus    *corpus.Corpus
	questions *wordvec.Questions // nil: there are none
	known     []wordvec.Known
	rule      godwit.Rule
	dist      sampling.Distribution
	keep      []float32 // the probability of each word to be kept
}

// New checks the settings. The corpus is to have been opened with blocks of as
// many words as a step shall train. Questions may be nil.
func New(cfg Config, c *corpus.Corpus, q *wordvec.Questions) (*Task, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Settle()
	rule, err := cfg.rule()
	if err != nil {
		return nil, err
	}
	v := c.Vocabulary
	counts := make([]float64, len(v.Counts))
	for i, n := range v.Counts {
		counts[i] = float64(n)
	}
	dist, err := sampling.Power(counts, Exponent)
	if err != nil {
		return nil, err
	}
	t := &Task{cfg: cfg, corpus: c, questions: q, rule: rule, dist: dist, keep: keep(cfg.Subsample, v)}
	if q != nil {
		t.known = q.Known(v.ID, cfg.Restrict)
	}
	switch {
	case len(v.Words) < 2:
		return nil, fmt.Errorf("w2v: the text has %d word, want at least 2", len(v.Words))
	case t.heldOut() == c.Blocks():
		return nil, errors.New("w2v: all of the text is held out: give more, smaller steps, or hold out less")
	case len(t.known) == 0 && t.heldOut() == 0:
		return nil, fmt.Errorf("w2v: there is nothing to evaluate the model by: no text is held out (HoldOut %d of %d blocks), and no question has only words of the text", cfg.HoldOut, c.Blocks())
	}
	return t, nil
}

// keep is the probability to keep each word when frequent ones are subsampled:
// √(t/f) + t/f, at most 1, where f is the word's share of the text. That is what
// word2vec.c does; the paper has √(t/f), equation 5.
func keep(t float64, v *corpus.Vocabulary) []float32 {
	p := make([]float32, len(v.Counts))
	for i, n := range v.Counts {
		p[i] = 1
		if t > 0 {
			x := t * float64(v.Total) / float64(n)
			p[i] = float32(min(1, math.Sqrt(x)+x))
		}
	}
	return p
}

// Distribution is what the sampler is to draw from: rows of the output table, by
// the frequency of words to the power of Exponent.
func (t *Task) Distribution() sampling.Distribution { return t.dist }

// Tables describes the tables that the task trains, for [godwit.NewModel]. The
// model may have other tables beside. First values are word2vec.c's.
func (t *Task) Tables() []godwit.Table {
	rows, r := uint64(len(t.keep)), 0.5/float32(t.cfg.Dim)
	counts := t.corpus.Vocabulary.Counts
	pool := float64(t.corpus.Blocks()) * float64(t.cfg.Pool)
	kept := func(row uint64) float64 { return float64(t.keep[row]) * float64(counts[row]) }
	return []godwit.Table{
		{Name: InputTable, Rows: rows, Dim: t.cfg.Dim, Rule: t.rule, Init: godwit.Uniform{Lo: -r, Hi: r}, Hot: kept},
		{Name: OutputTable, Rows: rows, Dim: t.cfg.Dim, Rule: t.rule, Hot: func(row uint64) float64 {
			return kept(row) + pool*t.dist.Prob(row)
		}},
	}
}

// Questions is a line about the questions, for people; empty if there are none.
func (t *Task) Questions() string {
	if t.questions == nil {
		return ""
	}
	all := 0
	for i := range t.questions.Sections {
		all += len(t.questions.Sections[i].Questions)
	}
	return fmt.Sprintf("; %d of %d questions have only words among the %d most frequent", len(t.known), all, min(t.cfg.Restrict, len(t.keep)))
}

// Warnings returns what may keep the task from learning, a sentence each: steps that are left fewer than two
// words, on average, have no pair to train.
func (t *Task) Warnings() []string {
	left, v := 0.0, t.corpus.Vocabulary
	for i, n := range v.Counts {
		left += float64(t.keep[i]) * float64(n)
	}
	if left >= 2*float64(t.corpus.Blocks()) {
		return nil
	}
	return []string{fmt.Sprintf("subsampling leaves about %.0f of the %d words for %d steps, and a step without a pair of words trains nothing: take more text, or subsample less (--subsample 0: not at all), or give steps more words (--batch)",
		left, v.Total, t.corpus.Blocks())}
}

// Fingerprint names settings and data.
func (t *Task) Fingerprint() string {
	return fmt.Sprintf("w2v %+v on %s, %d questions", t.cfg, t.corpus.Fingerprint(), len(t.known))
}

// steps is the number of batches of an epoch: blocks that are trained.
func (t *Task) steps() int { return t.corpus.Blocks() - t.heldOut() }

// Chunks implements [train.Task]. A chunk is a run of the blocks that are trained, as near as
// possible to a run of the text: what is written together has words in common.
func (t *Task) Chunks() int {
	n, _ := schedule.Cut(t.steps())
	return n
}

// block returns the block of a step.
func (t *Task) block(chunk, step int) int {
	_, per := schedule.Cut(t.steps())
	return t.trained(chunk*per + step)
}

// Trainer returns a worker's trainer.
func (t *Task) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[Batch], error) {
	return newTrainer(t, w, newLoader(t, part.Epochs))
}

// Evaluate evaluates the model by its questions and by the text held out. What
// comes first, and decides, are the questions, if there are any.
func (t *Task) Evaluate(ctx context.Context, env *train.Env, epoch int) (train.Evaluation, error) {
	q, err := t.EvaluateOn(ctx, env, fmt.Sprintf("epoch %d", epoch), t.cfg.Judged)
	if err != nil {
		return train.Evaluation{}, err
	}
	ev := train.Evaluation{Metrics: q.Metrics(), LowerIsBetter: len(t.known) == 0}
	if q.Pairs == 0 && len(t.known) == 0 {
		ev.Warnings = []string{"the text held out has no pair of words, or subsampling left none, so there is no figure: take more text, or subsample less (--subsample 0: not at all), or give steps more words (--batch)"}
	}
	return ev, nil
}

// heldOut is the number of blocks that are not trained.
func (t *Task) heldOut() int {
	if t.cfg.HoldOut == 0 {
		return 0
	}
	return t.corpus.Blocks() / t.cfg.HoldOut
}

// trained returns the i-th block that is trained: of every HoldOut blocks, the
// last one is not.
func (t *Task) trained(i int) int {
	if t.cfg.HoldOut == 0 {
		return i
	}
	return i + i/(t.cfg.HoldOut-1)
}

// keys are the tables' first keys.
type keys struct{ input, output godwit.Key }

// keys finds the task's tables in a model.
func (t *Task) keys(m *godwit.Model) (keys, error) {
	first, err := tables.Find(m, t.Tables())
	if err != nil {
		return keys{}, fmt.Errorf("w2v: %w", err)
	}
	return keys{first[0], first[1]}, nil
}
