package linear

import (
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/optim"

	"github.com/godwit-ps/godwit/data/setting"
)

// The update rules of the weights.
const (
	FTRL    = "ftrl"
	AdaGrad = "adagrad"
)

// Rules returns the names that Config.Rule can have.
func Rules() []string { return []string{FTRL, AdaGrad} }

// A Config holds the settings of a model and its stochastic training. Start
// from [DefaultConfig]; the zero Config is not valid.
type Config struct {
	// Rule is how gradients change weights: FTRL (McMahan et al. 2013), or
	// AdaGrad with a proximal step at each push.
	Rule string
	// LR is the rule's learning rate, above 0 (for FTRL the α of its paper).
	LR float32
	// Beta is FTRL's β, which dampens the first steps; above 0.
	Beta float32
	// L1 and L2 weigh the penalty of all weights against the loss of all examples;
	// neither is negative. AdaGrad charges each push its share of a pass over the data, so
	// that it shrinks features that are not in every batch less than that.
	L1, L2 float32
	// Bias says that the margin has a bias b.
	Bias bool
	// Batch is the number of examples of a step, 1 … 2^16. Their gradients are
	// summed.
	Batch int

	// Factors is the number of floats of a feature's factor, up to 1024; 0 is a plain
	// linear model.
	Factors int
	// FactorLR is the learning rate of the factors' AdaGrad. With the other defaults, the log loss on the Frappe data is
	// lowest at 0.1 and 0.2, of 8, 16 and 64 factors; with 0.01 the factors hardly learn in 30 epochs. FactorL2 is the weight
	// of half their squares for each example that they are in, and FactorStd the
	// standard deviation of their first values, around 0.
	FactorLR, FactorL2, FactorStd float32

	// Seed decides the order of examples. Rows follow the seed of the server.
	Seed uint64
}

// DefaultConfig returns FTRL on a linear model.
func DefaultConfig() Config {
	return Config{
		Rule: FTRL, LR: 0.1, Beta: 1, L1: 1, Bias: true, Batch: 64,
		FactorLR: 0.1, FactorL2: 1e-2, FactorStd: 0.01, Seed: 1,
	}
}

// Bounds that keep a step's buffers within memory.
const (
	maxBatch   = 1 << 16
	maxFactors = 1 << 10
)

// Check returns what is wrong with the settings.
func (c *Config) Check() error {
	switch {
	case c.Rule != FTRL && c.Rule != AdaGrad:
		return bad("Rule", fmt.Sprintf("%q", c.Rule), FTRL+" or "+AdaGrad)
	case c.Batch < 1 || c.Batch > maxBatch:
		return bad("Batch", c.Batch, fmt.Sprintf("1 … %d examples", maxBatch))
	case c.Factors < 0 || c.Factors > maxFactors:
		return bad("Factors", c.Factors, fmt.Sprintf("0 (a linear model) … %d floats", maxFactors))
	}
	for _, p := range []struct {
		field string
		x     float32
	}{{"LR", c.LR}, {"Beta", c.Beta}, {"FactorLR", c.FactorLR}} {
		if !(p.x > 0) || math.IsInf(float64(p.x), 0) {
			return bad(p.field, p.x, "a positive number")
		}
	}
	for _, p := range []struct {
		field string
		x     float32
	}{{"L1", c.L1}, {"L2", c.L2}, {"FactorL2", c.FactorL2}, {"FactorStd", c.FactorStd}} {
		if err := notNegative(p.field, p.x); err != nil {
			return err
		}
	}
	return nil
}

func bad(field string, got any, want string) error {
	return setting.Bad("linear.Config", field, got, want)
}

func notNegative(field string, x float32) error {
	if !(x >= 0) || math.IsInf(float64(x), 0) {
		return bad(field, x, "0 or a positive number")
	}
	return nil
}

// rules returns the rules of weights and bias. share is a batch's share of a
// pass over the data.
func (c *Config) rules(share float32) (weight, bias godwit.Rule) {
	if c.Rule == FTRL {
		return optim.FTRL{LR: c.LR, Beta: c.Beta, L1: c.L1, L2: c.L2}, optim.FTRL{LR: c.LR, Beta: c.Beta}
	}
	return optim.ProximalAdaGrad{LR: c.LR, L1: c.L1 * share, L2: c.L2 * share}, optim.AdaGrad{LR: c.LR}
}
