package w2v

import (
	"fmt"
	"math"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/optim"

	"github.com/godwit-ps/godwit/data/setting"
)

// The names of the methods.
const (
	SkipGram = "skipgram"
	CBOW     = "cbow"
)

// A Config holds the settings of a model and its training. Start from
// [DefaultConfig]; the zero Config is not valid.
type Config struct {
	// Method is SkipGram or CBOW.
	Method string
	// Dim is the number of floats of a vector, 1 … 16,384.
	Dim int
	// Window is how far away a word's context reaches at the most, in words that
	// subsampling left, 1 … 100; each word draws its own reach, 1 … Window.
	Window int
	// Negatives is how many negative samples count for a pair, 1 … 16,384.
	Negatives int
	// Pool is the number of samples that all pairs of a step share, 1 … 16,384: each
	// is a negative of every pair and counts Negatives/Pool times.
	Pool int
	// Sampler is the index of the run's sampler that draws them from the table of
	// outputs, by Task.Distribution.
	Sampler int
	// Subsample is the frequency, as a share of all words, 0 … 1, above which words
	// are left out at random; 0 leaves out none.
	Subsample float64
	// Rule is the update rule of both tables, by its name (see optim.Parse).
	// Gradients are summed over the pairs of a step.
	Rule string
	// LR is the learning rate of Rule; 0 is what suits it and Method: see Settle.
	LR float32
	// LastLR is the share of LR at the end, 0 … 1; the rate falls linearly, by which gradients
	// are multiplied. 1 keeps it constant, and is the only one that the rule adam can have. With
	// AdaGrad rules steps fall more slowly: see the package comment.
	LastLR float32
	// HoldOut, 2 or more, has every HoldOut-th block of the text held out of
	// training, for the loss of an evaluation; 0 holds out none.
	HoldOut int
	// Restrict is the number of the most frequent words by which analogies are answered,
	// at least 1, as is customary; questions with other words are not asked.
	Restrict int
	// Judged bounds the questions, and the blocks held out, that Evaluate uses; 0: all.
	Judged int
	// Seed decides subsampling and windows. Rows and samples follow the seed of
	// the run's server.
	Seed uint64
}

// DefaultConfig returns settings that do well on the text of some novels.
func DefaultConfig() Config {
	return Config{
		Method: SkipGram, Dim: 100, Window: 5, Negatives: 5, Pool: 128, Subsample: 1e-3,
		Rule: "rowadagrad", LastLR: 1e-4, HoldOut: 100, Restrict: 30_000, Seed: 1,
	}
}

// Bounds that keep a step's buffers within memory, and spans within a byte.
const (
	maxDim    = 1 << 14
	maxWindow = 100
	maxPool   = 1 << 14
)

func (c *Config) check() error {
	bad := func(field string, got any, want string) error {
		return setting.Bad("w2v.Config", field, got, want)
	}
	switch {
	case c.Method != SkipGram && c.Method != CBOW:
		return bad("Method", fmt.Sprintf("%q", c.Method), SkipGram+" or "+CBOW)
	case c.Dim < 1 || c.Dim > maxDim:
		return bad("Dim", c.Dim, fmt.Sprintf("1 … %d floats", maxDim))
	case c.Window < 1 || c.Window > maxWindow:
		return bad("Window", c.Window, fmt.Sprintf("1 … %d words", maxWindow))
	case c.Negatives < 1 || c.Negatives > maxPool:
		return bad("Negatives", c.Negatives, fmt.Sprintf("1 … %d samples", maxPool))
	case c.Pool < 1 || c.Pool > maxPool:
		return bad("Pool", c.Pool, fmt.Sprintf("1 … %d samples", maxPool))
	case c.Sampler < 0:
		return bad("Sampler", c.Sampler, "the index of a sampler of the run")
	case !(c.Subsample >= 0 && c.Subsample <= 1):
		return bad("Subsample", c.Subsample, "a share of all words, 0 … 1")
	case !(c.LR >= 0) || math.IsInf(float64(c.LR), 0):
		return bad("LR", c.LR, "a positive learning rate, or 0 for the rule's own")
	case !(c.LastLR >= 0 && c.LastLR <= 1):
		return bad("LastLR", c.LastLR, "a share of LR, 0 … 1")
	case c.Rule == "adam" && c.LastLR < 1:
		return bad("LastLR", c.LastLR, "1 with the rule adam: the rate falls by smaller gradients, and the steps of adam are as long for these; or another rule")
	case c.HoldOut < 0 || c.HoldOut == 1:
		return bad("HoldOut", c.HoldOut, "0, or at least 2: every so many-th block")
	case c.Restrict < 1:
		return bad("Restrict", c.Restrict, "a number of words, at least 1")
	case c.Judged < 0:
		return bad("Judged", c.Judged, "0, or a number of questions")
	}
	return nil
}

// Settle gives LR the value that suits rule and method, if it is 0. [New] does so too. The first steps of the
// AdaGrad rules are about as long as the rate; at theirs, sgd and momentum diverge with skip-gram. The gradients of
// CBOW are smaller: a word has one pair, and each input a share of its query.
func (c *Config) Settle() {
	if c.LR == 0 {
		c.LR = rate(c.Method, c.Rule)
	}
}

// rate is the learning rate that suits a method and a rule.
func rate(method, rule string) float32 {
	switch rule {
	case "sgd", "proxsgd":
		if method == CBOW {
			return 0.2
		}
		return 0.025 // word2vec's own
	case "momentum": // a gradient counts ten times in all
		return rate(method, "sgd") / 10
	case "adam": // each of its steps is about as long as the rate
		return 0.01
	case "adagrad", "proxadagrad":
		return 0.15
	}
	return 0.2
}

// rule makes the update rule.
func (c *Config) rule() (godwit.Rule, error) {
	r, err := optim.Parse(fmt.Sprintf("%s(lr=%v)", c.Rule, c.LR))
	if err != nil {
		return nil, setting.Bad("w2v.Config", "Rule", c.Rule, "one of "+strings.Join(optim.GradientRules(), ", "))
	}
	return r, nil
}
