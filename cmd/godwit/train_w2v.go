package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/train/task"
	"github.com/godwit-ps/godwit/train/w2v"
)

func init() { trainTasks = append(trainTasks, w2vTask) }

const w2vLegend = `analogies: share of the questions that are answered right, among the most frequent
words; syntactic questions are about forms of words, semantic ones about meanings.
held-out loss: of a pair of words and its negatives, in text that is not trained.`

func w2vTask() cli.Task {
	s := task.DefaultW2V()
	return cli.Task{
		Settings: s,
		Short:    "Train word vectors",
		About: `Train vectors of words from the words that stand near them, by skip-gram or
CBOW with negative sampling, as word2vec does.

The text is generated, with analogies to be found, or read from a file or from
the *.txt and *.gz files of a folder. It may be larger than memory, and
compressed by gzip. Each node counts the words of all of it before it joins the
run (--join is to leave time for that: a minute for some gigabytes), and then
reads its part. Every 100th step's text is held out and measures the model; so do
analogies, from a file like questions-words.txt.

"godwit nearest" and "godwit analogy" ask what was exported.`,
		Example: `  godwit train w2v                         # one node
  godwit train w2v --nodes 4               # four, as processes on this machine
  godwit train w2v --data novels --questions questions-words.txt --export vectors
  godwit train w2v --data tokenized.txt --format lines --method cbow --dim 300`,
		Data:   "`path` of a text, or of a folder of texts (default: one is generated)",
		Legend: w2vLegend,
		DataFlags: func(g cli.Group) {
			g.StringVar((*string)(&s.Format), "format", string(s.Format), "`name`: "+string(corpus.Prose)+" (words are letters, in lower case; empty lines end sentences), "+string(corpus.Lines)+" (words are what blanks separate; each line is a sentence)")
			g.Int64Var(&s.MinCount, "min-count", s.MinCount, "`number` of times that a word must stand in the text to have a vector")
			g.Var((*pathValue)(&s.Questions), "questions", "`file` of analogies to evaluate by: four words a line, sections begin with \": name\"")
			g.IntVar(&s.Restrict, "restrict", s.Restrict, "ask and answer them with so many of the most frequent `words`")
			g.IntVar(&s.HoldOut, "hold-out", s.HoldOut, "hold out every so many-th step's text; 0: none")
			g.IntVar(&s.Corpus.Stems, "stems", s.Corpus.Stems, "`number` of stems of the generated text")
			g.IntVar(&s.Corpus.Forms, "forms", s.Corpus.Forms, "`number` of forms of each stem")
			g.IntVar(&s.Corpus.Words, "words", s.Corpus.Words, "`number` of words of the generated text")
			g.Float64Var(&s.Corpus.Exponent, "zipf", s.Corpus.Exponent, "how unequally popular its stems are: `exponent` of Zipf's law, 0 … 2")
		},
		ModelFlags: func(g cli.Group) {
			g.StringVarP(&s.Method, "method", "m", s.Method, "`name`: "+w2v.SkipGram+", "+w2v.CBOW)
			g.IntVar(&s.Dim, "dim", s.Dim, "`floats` of a vector")
			g.IntVar(&s.Window, "window", s.Window, "how many `words` away a context reaches at the most")
		},
		TrainingFlags: func(g cli.Group) {
			g.IntVar(&s.Batch, "batch", s.Batch, "`words` of the text that a step trains")
			g.IntVar(&s.Negatives, "negatives", s.Negatives, "`number` of negative samples that count for a pair of words")
			g.IntVar(&s.Pool, "pool", s.Pool, "`number` of samples that the pairs of a step share")
			g.Sampling(&s.Sampling)
			g.Float64Var(&s.Subsample, "subsample", s.Subsample, "share of the text above which a word is left out at random; 0: never")
			suits := func(method, rule string) float32 {
				c := w2v.Config{Method: method, Rule: rule}
				c.Settle()
				return c.LR
			}
			g.Rule(&s.Rule, &s.LR, ratesOf(func(rule string) float32 { return suits(w2v.SkipGram, rule) })+
				fmt.Sprintf("; with %s: momentum %v, proxsgd %v, sgd %v", w2v.CBOW, suits(w2v.CBOW, "momentum"), suits(w2v.CBOW, "proxsgd"), suits(w2v.CBOW, "sgd")))
			g.Float32Var(&s.LastLR, "last-lr", s.LastLR, "what `share` of it is left at the end; it falls evenly, the steps of AdaGrad rules more slowly; adam needs 1, which it has unless it is given")
		},
		Settle: func(given func(string) bool) {
			if s.Rule == "adam" && !given("last-lr") {
				s.LastLR = 1
			}
			s.Config.Settle()
		},
	}
}

// ratesOf lists the learning rates that suit the update rules.
func ratesOf(suits func(rule string) float32) string {
	var rules []string
	for _, name := range optim.GradientRules() {
		rules = append(rules, fmt.Sprintf("%s %v", name, suits(name)))
	}
	return "the rule: " + strings.Join(rules, ", ")
}

// A pathValue is a flag that names a file. It becomes absolute, as other
// processes and people on other machines read it too.
type pathValue string

func (p *pathValue) String() string { return string(*p) }
func (p *pathValue) Type() string   { return "file" }
func (p *pathValue) Set(s string) error {
	abs, err := filepath.Abs(s)
	*p = pathValue(abs)
	return err
}
