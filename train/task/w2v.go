package task

import (
	"context"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/wordvec"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/w2v"
)

func init() { Register(func() Settings { return DefaultW2V() }) }

// W2V are the settings of the task "w2v", word vectors. The seed, the sampler and
// the bound on evaluations of its Config are set by Load.
type W2V struct {
	w2v.Config
	// Batch is how many words of the text a step trains.
	Batch int
	// MinCount is how often a word must stand in the text to have a vector.
	MinCount int64
	// Format is that of the text.
	Format corpus.Format
	// Questions is a file of analogies to evaluate the model by, or empty.
	Questions string
	// Corpus is what is generated where there are no data; it brings questions of
	// its own.
	Corpus corpus.Spec
	// Sampling is the name of a scheme of package sampling, for the negatives.
	Sampling string
}

// DefaultW2V returns settings that train in seconds on a generated text.
func DefaultW2V() *W2V {
	return &W2V{
		Config: w2v.DefaultConfig(), Batch: 250, MinCount: 5, Format: corpus.Prose, Corpus: corpus.DefaultSpec(),
		Sampling: sampling.Prepared{}.Name(),
	}
}

func (s *W2V) Name() string { return "w2v" }
func (s *W2V) Epochs() int  { return 5 }

// Generate implements [Generated].
func (s *W2V) Generate(exponent float64, seed uint64) {
	s.Corpus.Exponent, s.Corpus.Seed = exponent, seed
}

// Settled implements [Settled]: of a rate that was left open.
func (s *W2V) Settled(_, rule string) { settle(&s.LR, rule) }

// Open implements [Settled].
func (s *W2V) Open() []string { return open("LR", s.LR) }

// Unused implements [Partial].
func (s *W2V) Unused(data string) []Unused {
	var u []Unused
	if data != "" {
		u = unusedData(data, []any{&s.Corpus}, nil)
	} else if s.Questions == "" { // which are read as the text is
		u = unusedData(data, nil, []any{&s.Format})
	}
	if data != "" && s.Questions == "" {
		u = append(u, Unused{"it is about the questions of --questions, and there are none", []any{&s.Restrict}})
	}
	return u
}

// Check tries the settings with a text of one sentence.
func (s *W2V) Check() error {
	if _, err := sampling.SchemeNamed(s.Sampling); err != nil {
		return err
	}
	if err := s.Corpus.Check(); err != nil {
		return err
	}
	o := s.options()
	if err := o.Check(); err != nil {
		return err
	}
	o.MinCount = 1
	c, err := corpus.FromText("check", []byte("a b"), o)
	if err != nil {
		return err
	}
	_, err = w2v.New(s.Config, c, &wordvec.Questions{Sections: []wordvec.Section{{Questions: [][4]string{{"a", "b", "a", "b"}}}}})
	return err
}

func (s *W2V) options() corpus.Options {
	return corpus.Options{Format: s.Format, MinCount: s.MinCount, Block: s.Batch}
}

// Load counts the words of a text (see [corpus.Open]), or generates one.
func (s *W2V) Load(setup Setup) (Task, error) {
	scheme, err := sampling.SchemeNamed(s.Sampling)
	if err != nil {
		return nil, err
	}
	var c *corpus.Corpus
	var q *wordvec.Questions
	if setup.Data == "" {
		c, q, err = s.generate()
	} else {
		c, err = s.open(setup.Data)
	}
	if err == nil && s.Questions != "" {
		// Words of prose are in lower case.
		q, err = wordvec.ReadQuestions(s.Questions, s.Format == corpus.Prose)
	}
	if err != nil {
		return nil, err
	}
	cfg := s.Config
	cfg.Seed, cfg.Sampler, cfg.Judged = setup.Seed, 0, setup.MaxEvalItems
	if cfg.HoldOut > 1 {
		cfg.HoldOut = max(2, min(cfg.HoldOut, c.Blocks()/2)) // of a small text, two blocks at least
	}
	t, err := w2v.New(cfg, c, q)
	if err != nil {
		return nil, err
	}
	return &textTask{Trained[w2v.Batch]{t, setup.evalWorkers()}, t, c, scheme}, nil
}

// fewBlocks is how many blocks a text should have, so that one of them can be held out. A block of fewer words
// than leastBlock has few pairs of words or none: a smaller text has fewer blocks, two at least.
const (
	fewBlocks  = 20
	leastBlock = 10
)

// open opens a text, with smaller blocks if it is so small that there would be few.
func (s *W2V) open(path string) (*corpus.Corpus, error) {
	c, err := corpus.Open(path, s.options())
	if err != nil || c.Blocks() >= fewBlocks || s.HoldOut == 0 {
		return c, err
	}
	o := s.options()
	n := c.Stats.Words
	o.Block = int(min(int64(o.Block), max(1, n/fewBlocks, min(leastBlock, n/2))))
	return corpus.Open(path, o)
}

func (s *W2V) generate() (*corpus.Corpus, *wordvec.Questions, error) {
	g, err := corpus.Generate(s.Corpus)
	if err != nil {
		return nil, nil, err
	}
	o := s.options()
	o.Format = corpus.Prose
	c, err := corpus.FromText("the generated text", g.Text, o)
	return c, &wordvec.Questions{Sections: []wordvec.Section{{Name: "gram", Questions: g.Analogies}}}, err
}

// A textTask is the task "w2v" with its text.
type textTask struct {
	Trained[w2v.Batch]
	w2v    *w2v.Task
	text   *corpus.Corpus
	scheme sampling.Scheme
}

func (t *textTask) Unit() (string, int64) { return "words", 1 }

func (t *textTask) Warnings() []string { return slices.Concat(t.text.Warnings(), t.w2v.Warnings()) }

// Unvalidated implements [Unvalidated]: questions and text held out are those of the test.
func (t *textTask) Unvalidated() bool { return true }

func (t *textTask) Data() string { return t.text.Fingerprint() }

func (t *textTask) Summary() string { return t.text.String() + t.w2v.Questions() }

func (t *textTask) Tables() []godwit.Table { return t.w2v.Tables() }

func (t *textTask) Samplers() []sampling.Spec {
	return []sampling.Spec{{Name: "negatives", Table: 1, Dist: t.w2v.Distribution(), Scheme: t.scheme}}
}

func (t *textTask) Test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error) {
	most := 0
	if part {
		most = untrainedQuestions
	}
	q, err := t.w2v.EvaluateOn(ctx, env, name, most)
	return q.Metrics(), err
}

const untrainedQuestions = 100

func (t *textTask) Export(ctx context.Context, w godwit.Worker, s *export.Set) error {
	return t.w2v.Export(ctx, w, s)
}
