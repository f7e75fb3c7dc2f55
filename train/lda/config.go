package lda

import (
	"fmt"
	"math"

	"github.com/godwit-ps/godwit/data/setting"
)

// A Config holds the settings of a model and its training. Start from
// [DefaultConfig]; the zero Config is not valid.
type Config struct {
	// Topics is the number of topics, 2 … 4096.
	Topics int
	// Alpha and Beta are the parameters of the Dirichlet distributions of
	// documents' topics and of topics' words, for each topic and each word: the
	// smaller, the fewer topics and words dominate. Both are above 0.
	Alpha, Beta float32
	// Batch is the least number of words of a step, 1 … 2^20, which ends with a
	// document; 0 is a 64th of all words, from 2,000 to 8,000. A row of counts that is pulled is used for more words in larger steps,
	// and is fresher in smaller ones.
	Batch int
	// Fold is how many times the words of a document are drawn in an evaluation, at least 1.
	Fold int
	// Seed decides the draws.
	Seed uint64
}

// DefaultConfig returns settings for some thousand documents and more.
func DefaultConfig() Config {
	return Config{Topics: 50, Alpha: 0.1, Beta: 0.1, Fold: 20, Seed: 1}
}

// LeastBatch is how many words a step has at least where [Config].Batch is 0.
const LeastBatch = 2000

// batch is the least number of words of a step where there are so many.
func (c *Config) batch(words int) int {
	if c.Batch > 0 {
		return c.Batch
	}
	return min(max(words/64, LeastBatch), 8000)
}

const (
	maxTopics = 1 << 12
	maxBatch  = 1 << 20
)

// Check returns what is wrong with the settings.
func (c *Config) Check() error {
	bad := func(field string, got any, want string) error {
		return setting.Bad("lda.Config", field, got, want)
	}
	for _, p := range []struct {
		field string
		x     float32
	}{{"Alpha", c.Alpha}, {"Beta", c.Beta}} {
		if !(p.x > 0) || math.IsInf(float64(p.x), 0) {
			return bad(p.field, p.x, "a positive number")
		}
	}
	switch {
	case c.Topics < 2 || c.Topics > maxTopics:
		return bad("Topics", c.Topics, fmt.Sprintf("2 … %d", maxTopics))
	case c.Batch < 0 || c.Batch > maxBatch:
		return bad("Batch", c.Batch, fmt.Sprintf("1 … %d words, or 0", maxBatch))
	case c.Fold < 1:
		return bad("Fold", c.Fold, "at least 1")
	}
	return nil
}
