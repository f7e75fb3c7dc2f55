package kge

import (
	"fmt"
	"math"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/optim"

	"github.com/godwit-ps/godwit/data/setting"
)

// A Config holds the settings of a model and its training. Start from
// [DefaultConfig], which is meant to suit any graph; the zero Config is not valid.
type Config struct {
	// Model is one of [Models].
	Model string
	// Dim is the number of floats of an entity's embedding, 1 … 16,384. For the
	// complex models that is twice the number of complex elements.
	Dim int
	// Loss is Softmax or Logistic.
	Loss string
	// Batch is the number of triples of a step, 1 … 2^16. Each is trained in both
	// directions.
	Batch int
	// Negatives is the number of sampled entities of a step, 1 … 2^16, which all
	// queries of the batch are compared with.
	Negatives int
	// Sampler is the index of the run's sampler that draws the negatives:
	// uniformly, from the entity table.
	Sampler int
	// Rule is the update rule of both tables, by its name (see optim.Parse).
	// Gradients are summed over the batch, not averaged; the steps of AdaGrad and
	// Adam are the same either way.
	Rule string
	// LR is the learning rate of Rule; 0 is what suits the model (see Settle): with adam 0.03 of rotate and 0.01 of the others, else, as
	// suits AdaGrad, 0.6 of rotate, 0.2 of transe and 0.1 of the others. Of rotate, sgd and proxsgd have 0.1; of the models that score by dot products,
	// rowadagrad and ftrl have 0.3, and sgd and proxsgd 0.01; momentum has a tenth of sgd's.
	LR float32
	// LRSchedule is Constant, which "" is too, Linear or Cosine: how LR changes from epoch to epoch. All but
	// Constant need a rule that takes the rate with each push: sgd, adagrad, rowadagrad or
	// adam. Rows then have one float more.
	LRSchedule string
	// InitStd is the standard deviation of the first values, of a normal
	// distribution around 0; not negative. 0 is what suits (see Settle): 0.3 of the models that score by dot products with
	// sgd, proxsgd, momentum and ftrl, else 0.001.
	InitStd float32
	// N3 weighs the sum of cubed magnitudes, and L2 half the sum of squares, of
	// a query's three embeddings, against the query's loss. Neither is negative; 0
	// is none. The distance models, transe and rotate, take no N3.
	N3, L2 float32
	// EntityDropout and RelationDropout are the probabilities with which an
	// element of a query's entity and relation is left out in training, from 0 to
	// below 1.
	EntityDropout, RelationDropout float32
	// Reciprocal gives each relation a second embedding for subject queries.
	Reciprocal bool
	// Margin is added to all scores by the logistic loss. Distances, which are
	// negative scores, need one.
	Margin float32
	// Adversarial is the temperature of self-adversarial negatives, which the logistic
	// loss may have: it weighs each negative of a query by the softmax of Adversarial
	// times its score. 0 weighs all alike; not negative.
	Adversarial float32
	// Judged bounds the triples that Evaluate ranks, evenly spaced; 0: all.
	Judged int
	// Seed decides the order of triples and the dropout. Rows and samples follow
	// the seed of the run's server.
	Seed uint64
}

// DefaultConfig returns ComplEx with settings found on FB15k-237 and a
// generated graph.
func DefaultConfig() Config {
	return Config{
		Model: "complex", Dim: 256, Loss: Softmax, Batch: 512, Negatives: 500,
		Rule: "adagrad", LRSchedule: Constant, N3: 0.05, Seed: 1,
	}
}

// Bounds that keep a step's buffers within memory.
const (
	maxBatch     = 1 << 16
	maxNegatives = 1 << 16
)

func (c *Config) check() error {
	bad := func(field string, got any, want string) error {
		return setting.Bad("kge.Config", field, got, want)
	}
	for _, p := range []struct {
		field string
		x     float32
	}{{"N3", c.N3}, {"L2", c.L2}, {"InitStd", c.InitStd}, {"Adversarial", c.Adversarial}} {
		if !(p.x >= 0) || math.IsInf(float64(p.x), 0) {
			return bad(p.field, p.x, "0 or a positive number")
		}
	}
	for _, p := range []struct {
		field string
		x     float32
	}{{"EntityDropout", c.EntityDropout}, {"RelationDropout", c.RelationDropout}} {
		if !(p.x >= 0 && p.x < 1) {
			return bad(p.field, p.x, "a probability from 0 to below 1")
		}
	}
	switch {
	case c.Dim < 1 || c.Dim > 1<<14:
		return bad("Dim", c.Dim, "1 … 16384 floats")
	case c.Batch < 1 || c.Batch > maxBatch:
		return bad("Batch", c.Batch, fmt.Sprintf("1 … %d triples", maxBatch))
	case c.Negatives < 1 || c.Negatives > maxNegatives:
		return bad("Negatives", c.Negatives, fmt.Sprintf("1 … %d samples a batch", maxNegatives))
	case c.Sampler < 0:
		return bad("Sampler", c.Sampler, "the index of a sampler of the run")
	case !(c.LR >= 0) || math.IsInf(float64(c.LR), 0):
		return bad("LR", c.LR, "a positive learning rate, or 0 for the model's own")
	case schedules[c.schedule()] == nil:
		return bad("LRSchedule", c.LRSchedule, strings.Join([]string{Constant, Linear, Cosine}, ", "))
	case c.Margin != c.Margin || math.IsInf(float64(c.Margin), 0):
		return bad("Margin", c.Margin, "a number")
	case c.Judged < 0:
		return bad("Judged", c.Judged, "0, or a number of triples")
	case c.Adversarial > 0 && c.Loss != Logistic:
		return bad("Adversarial", c.Adversarial, fmt.Sprintf("0 with the loss %s: only the loss %s weighs its negatives", c.Loss, Logistic))
	}
	return nil
}

// Settle gives LR and InitStd the values that suit model and rule, where they are 0. [New] and [Reload] do so too.
func (c *Config) Settle() {
	m, err := modelNamed(c.Model)
	if err != nil {
		return
	}
	if c.LR == 0 {
		c.LR = rate(m, c.Rule)
	}
	if c.InitStd == 0 {
		c.InitStd = initStd(m, c.Rule)
	}
}

// initStd is the standard deviation of the first values that suits a model and a rule. The gradient of a dot product of three
// embeddings is as small as the product of two of them: rules whose steps are as small as the gradients never get away from small values.
func initStd(m model, rule string) float32 {
	if !m.distance() && (plain(rule) || rule == "ftrl") {
		return 0.3
	}
	return 1e-3
}

// plain says that the steps of a rule are a fixed multiple of the gradients.
func plain(rule string) bool { return rule == "sgd" || rule == "proxsgd" || rule == "momentum" }

// rate is the learning rate that suits a model and a rule.
func rate(m model, rule string) float32 {
	if rule == "adam" { // its steps are about as long as the rate, and do not become shorter
		if _, ok := m.(rotatE); ok {
			return 0.03
		}
		return 0.01
	}
	if rule == "momentum" { // a gradient counts ten times in all
		if !m.distance() {
			return 0.001 // a tenth of float32(0.01) is another number
		}
		return rate(m, "sgd") / 10
	}
	switch m.(type) { // gradients of a distance towards a vector have a length of at most 1
	case rotatE:
		if rule == "sgd" || rule == "proxsgd" { // steps do not become shorter
			return 0.1
		}
		return 0.6
	case transE:
		return 0.2 // with 0.3 and more it is worse on small graphs
	}
	switch rule {
	case "sgd", "proxsgd": // relations, which are in many triples of a batch, diverge at more
		return 0.01
	case "rowadagrad", "ftrl": // the few large elements of a gradient, and ftrl's beta, make the steps of all shorter
		return 0.3
	}
	return 0.1
}

// rule makes the update rule.
func (c *Config) rule() (godwit.Rule, error) {
	r, err := optim.Parse(fmt.Sprintf("%s(lr=%v)", c.Rule, c.LR))
	if err != nil {
		return nil, setting.Bad("kge.Config", "Rule", c.Rule, "one of "+strings.Join(optim.GradientRules(), ", "))
	}
	if c.rated() {
		return c.ratedRule()
	}
	return r, nil
}
