package task

import (
	"context"
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/bagofwords"
	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/lda"

	"github.com/godwit-ps/godwit/data/setting"
)

func init() { Register(func() Settings { return DefaultLDA() }) }

// LDA are the settings of the task "lda", topic models. The seed of its Config
// is set by Load.
type LDA struct {
	lda.Config
	// Documents is what is generated where there are no data.
	Documents bagofwords.Spec
	// Text says how a text becomes documents.
	Text bagofwords.Options
	// Held is which documents are held out: every so many-th, at least 2.
	Held int
}

// DefaultLDA returns settings that train in seconds on generated documents.
func DefaultLDA() *LDA {
	return &LDA{Config: lda.DefaultConfig(), Documents: bagofwords.DefaultSpec(), Text: bagofwords.DefaultOptions(), Held: 20}
}

// UntrainedDocuments bounds the documents that Test uses if it is asked for a part of
// the data.
const UntrainedDocuments = 100

func (s *LDA) Name() string { return "lda" }
func (s *LDA) Epochs() int  { return 30 }

// Generate implements [Generated].
func (s *LDA) Generate(exponent float64, seed uint64) {
	s.Documents.Exponent, s.Documents.Seed = exponent, seed
}

func (s *LDA) Check() error {
	if s.Held < 2 {
		return setting.Bad("task.LDA", "Held", s.Held, "2 or more: hold out every 2nd document at the most")
	}
	return errors.Join(s.Config.Check(), s.Documents.Check(), s.Text.Check())
}

// Unused implements [Partial].
func (s *LDA) Unused(data string) []Unused {
	u := unusedData(data, []any{&s.Documents}, []any{&s.Text})
	if counted, err := bagofwords.Counted(data); err == nil && counted {
		u = append(u, Unused{fmt.Sprintf("it is about texts, and %s has the counts of documents", data), []any{&s.Text.Format, &s.Text.Documents, &s.Text.Length}})
	}
	if s.Text.Documents == bagofwords.Line {
		u = append(u, Unused{"each line is a document, of any length", []any{&s.Text.Length}})
	}
	return u
}

// Load reads a text (see [bagofwords.Load]), or generates documents.
func (s *LDA) Load(setup Setup) (Task, error) {
	var all *bagofwords.Set
	var err error
	if setup.Data == "" {
		all, err = bagofwords.Generate(s.Documents)
	} else {
		all, err = bagofwords.Load(setup.Data, s.Text)
	}
	if err != nil {
		return nil, err
	}
	docs, held := all.Split(s.Held)
	if docs.Len() == 0 {
		return nil, fmt.Errorf("lda: the text is one document, of %d words, and it is held out: give more text, or make shorter documents (--length, --document line)", len(held.Words))
	}
	evaluated := held
	if n := held.Len(); setup.MaxEvalItems > 0 && n > setup.MaxEvalItems {
		evaluated = held.Pick(train.EvenlySpaced(numbers(n), setup.MaxEvalItems))
	}
	cfg := s.Config
	cfg.Seed = setup.Seed
	t, err := lda.New(cfg, docs, evaluated)
	if err != nil {
		return nil, err
	}
	return &topicsTask{Trained[lda.Batch]{t, setup.evalWorkers()}, t, docs, held, all.Replaced}, nil
}

// A topicsTask is the task "lda" with its documents.
type topicsTask struct {
	Trained[lda.Batch]
	lda        *lda.Task
	docs, held *bagofwords.Set
	replaced   int64 // bytes of the text that are not UTF-8
}

func (t *topicsTask) Unit() (string, int64) { return "words", 1 }
func (t *topicsTask) Warnings() []string    { return corpus.ReplacedWarning(t.replaced) }
func (t *topicsTask) Unvalidated() bool     { return true }
func (t *topicsTask) Data() string          { return t.docs.Fingerprint() + "+" + t.held.Fingerprint() }

func (t *topicsTask) Summary() string {
	return t.docs.String() + "; held out: " + t.held.String()
}

// Tables sets Hot: how often training reads a row in an epoch, which is at most as often
// as the word occurs; topics are read with each word.
func (t *topicsTask) Tables() []godwit.Table {
	count := make([]float32, len(t.docs.Names))
	for _, w := range t.docs.Words {
		count[w]++
	}
	tables := t.lda.Tables()
	for i := range tables {
		name := tables[i].Name
		tables[i].Hot = func(row uint64) float64 {
			switch name {
			case lda.TopicTable:
				return float64(len(t.docs.Words))
			case lda.AssignedTable:
				return 1 // with the words that it is of
			}
			return float64(count[row])
		}
	}
	return tables
}

func (t *topicsTask) Samplers() []sampling.Spec { return nil }

func (t *topicsTask) Test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error) {
	set := t.held
	if n := set.Len(); part && n > UntrainedDocuments {
		set = set.Pick(numbers(UntrainedDocuments))
	}
	q, err := t.lda.EvaluateOn(ctx, env, name, set)
	if err != nil {
		return nil, err
	}
	return []train.Metric{{Name: "perplexity", Value: q.Perplexity}}, nil
}

func (t *topicsTask) Export(ctx context.Context, w godwit.Worker, s *export.Set) error {
	return t.lda.Export(ctx, w, s)
}
