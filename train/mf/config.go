package mf

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/optim"

	"github.com/godwit-ps/godwit/data/setting"
	"github.com/godwit-ps/godwit/train"
)

// The orders of cells; the package comment describes them.
const (
	Plain   = "plain"
	Columns = "columns"
	Blocks  = "blocks"
)

// Orders are the names of all orders.
func Orders() []string { return []string{Plain, Columns, Blocks} }

// SGD is the rule that trains cell after cell.
const SGD = "sgd"

// A Config holds the settings of a model and its training. Start from
// [DefaultConfig]; the zero Config is not valid.
type Config struct {
	// Dim is the number of floats of the vector of a row or column, 1 … 16,384.
	Dim int
	// Biased gives rows and columns a bias each, and adds the mean.
	Biased bool
	// Order is one of [Orders].
	Order string
	// Batch is the largest number of cells of a step, 1 … 2^16. 0 leaves it to the task, which
	// takes more of them where a run has one node: see the package comment.
	Batch int
	// Rule is the update rule of both tables, by its name (see optim.Parse).
	Rule string
	// LR is the learning rate γ of Rule; 0 is what suits it: see Settle.
	LR float32
	// BoldDriver changes the learning rate by the loss. It is for the rule "sgd".
	BoldDriver bool
	// L2 is λ, the weight of the squares against that of a cell's squared error; not
	// negative.
	L2 float32
	// InitStd is the standard deviation of the vectors' first values, of a normal
	// distribution around 0; not negative. Biases begin so too.
	InitStd float32
	// Seed decides the order of cells. Rows follow the seed of the run's server.
	Seed uint64
}

// DefaultConfig returns settings found on MovieLens 100k and a generated matrix.
func DefaultConfig() Config {
	return Config{
		Dim: 64, Biased: true, Order: Columns,
		Rule: SGD, BoldDriver: true, L2: 0.1, InitStd: 0.1, Seed: 1,
	}
}

// maxBatch keeps a step's buffers within memory.
const maxBatch = 1 << 16

func (c *Config) check() error {
	bad := func(field string, got any, want string) error {
		return setting.Bad("mf.Config", field, got, want)
	}
	finite := func(x float32) bool { return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) }
	switch {
	case c.Dim < 1 || c.Dim > 1<<14:
		return bad("Dim", c.Dim, "1 … 16384 floats")
	case !slices.Contains(Orders(), c.Order):
		return bad("Order", fmt.Sprintf("%q", c.Order), "one of "+strings.Join(Orders(), ", "))
	case c.Batch < 0 || c.Batch > maxBatch:
		return bad("Batch", c.Batch, fmt.Sprintf("1 … %d cells, or 0 to leave it to the task", maxBatch))
	case !(c.LR >= 0) || !finite(c.LR):
		return bad("LR", c.LR, "a positive learning rate, or 0 for the rule's own")
	case c.BoldDriver && c.Rule != SGD:
		return bad("BoldDriver", c.BoldDriver, fmt.Sprintf("false with the rule %q, whose steps the server makes: only those of %q follow the loss", c.Rule, SGD))
	case !(c.L2 >= 0) || !finite(c.L2):
		return bad("L2", c.L2, "0 or a positive number")
	case !(c.InitStd >= 0) || !finite(c.InitStd):
		return bad("InitStd", c.InitStd, "0 or a positive number")
	}
	return nil
}

// LeastBatch is how many cells a step has at least where [Config].Batch leaves that to the task: on several nodes, whose workers are to
// see each other's steps soon.
const LeastBatch = 256

// What bounds the cells of a step there.
const (
	manyCells   = 1 << 14 // at most, of one node: more save little
	manyFloats  = 1 << 20 // of a step's rows, or of its columns: buffers stay in caches
	partOfShare = 8       // see batch
)

// batch is the number of cells of a step in a part of the data. The larger it is, the more cells share a copy of
// a row. But workers that have a column at the same time all step from what it was before. Each of the
// w workers of a node has a column for batch/share of an epoch. With batches of an eighth of a share over w, one of the others
// has it too for less than an eighth of that time.
// Rules other than SGD make one step a batch, so they learn something else with another batch; and the chunks
// of the order Plain must follow from data and settings alone.
func (c *Config) batch(cells int, part train.Partition) int {
	switch {
	case c.Batch > 0:
		return c.Batch
	case part.Nodes != 1 || c.Rule != SGD || c.Order == Plain:
		return LeastBatch
	}
	share := cells / part.Count
	return max(LeastBatch, min(share/(partOfShare*part.Count), manyFloats/c.width(), manyCells))
}

// Settle gives LR the value that suits the rule, if it is 0. [New] and [Reload] do so too.
func (c *Config) Settle() {
	if c.LR == 0 {
		c.LR = rate(c.Rule)
	}
}

// rate is the learning rate that suits a rule.
func rate(rule string) float32 {
	switch rule {
	case SGD, "adam": // each step of adam is about as long as the rate
		return 0.01
	case "proxsgd": // the cells of a step all step from the same values, too far together at the rate of SGD
		return 0.005
	case "momentum": // a gradient counts ten times in all
		return 0.001
	}
	return 0.1 // the first steps are about as long as the rate, and become shorter
}

// rule makes the update rule. SGD's steps are made by the trainers, whose
// changes are added.
func (c *Config) rule() (godwit.Rule, error) {
	if c.Rule == SGD {
		return godwit.Add{}, nil
	}
	r, err := optim.Parse(fmt.Sprintf("%s(lr=%v)", c.Rule, c.LR))
	if err != nil {
		return nil, setting.Bad("mf.Config", "Rule", c.Rule, "one of "+strings.Join(optim.GradientRules(), ", "))
	}
	return r, nil
}

// width is the number of floats of a row: its vector, then its bias.
func (c *Config) width() int {
	if c.Biased {
		return c.Dim + 1
	}
	return c.Dim
}
