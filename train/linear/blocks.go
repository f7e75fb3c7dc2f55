package linear

import (
	"context"
	"fmt"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/train"
)

// A BlockConfig holds the settings of delayed block proximal gradient. Start
// from [DefaultBlockConfig]; the zero BlockConfig is not valid. There is no
// learning rate: see [Blocks].
type BlockConfig struct {
	// L1 and L2 weigh the penalty against the loss of all examples; neither is
	// negative.
	L1, L2 float32
	// Bias says that the margin has a bias b.
	Bias bool
	// Blocks is the number of blocks that the features are cut into, 1 … 2^16, each
	// with about as many values. 0 takes all weights at once where they are at most 512, the bias
	// among them, and else cuts 64 blocks.
	Blocks int
	// Delay is how many blocks may be under way before a block's outcome is
	// seen: with 0, each block sees all that came before it. 2 or more hide what
	// the network takes.
	Delay int
	// KKT is the share of L1 below which the gradient of a zero weight has to be
	// for the weight to be left out, 0 … 1; 0 leaves out none.
	KKT float32
	// Recheck makes every Recheck-th pass check all weights again; at least 1.
	Recheck int
}

// DefaultBlockConfig returns settings that are meant to do well on any data.
func DefaultBlockConfig() BlockConfig {
	return BlockConfig{L1: 1, Bias: true, Delay: 2, KKT: 0.9, Recheck: 5}
}

const (
	maxBlocks  = 1 << 16
	manyBlocks = 64 // of many features
	// maxWhole is how many weights are taken to their common minimum at the most: a pass takes an
	// example the square of its features, and its sums are a matrix of so many columns (1 MiB).
	maxWhole = 512
)

// Check returns what is wrong with the settings.
func (c *BlockConfig) Check() error {
	switch {
	case c.Blocks < 0 || c.Blocks > maxBlocks:
		return bad("Blocks", c.Blocks, fmt.Sprintf("0 (as the features ask for) … %d", maxBlocks))
	case c.Delay < 0:
		return bad("Delay", c.Delay, "0 (see every block's outcome) or more")
	case !(c.KKT >= 0 && c.KKT <= 1):
		return bad("KKT", c.KKT, "0 (leave out no weights) … 1")
	case c.Recheck < 1:
		return bad("Recheck", c.Recheck, "1 (look at all weights in every pass) or more")
	}
	if err := notNegative("L1", c.L1); err != nil {
		return err
	}
	return notNegative("L2", c.L2)
}

// Blocks trains by delayed block proximal gradient (Li, Andersen, Smola, Yu,
// "Communication Efficient Distributed Machine Learning with the Parameter
// Server", NIPS 2014, algorithm 3; called DARLIN in Li et al., OSDI'14). It
// implements [train.Task]. It is immutable and may be used by any number of
// goroutines.
//
// Each worker keeps its examples by features, and their margins. A pass goes
// over the blocks of features, a turn for each. In a turn, a worker computes the
// gradient and a curvature of its examples for each feature of the block, from
// the margins as they are, and pushes both, where they add up. Each weight has
// one worker that takes it to the minimum of
//
//	G·d + U/2·d² + L1·|w+d| + L2/2·(w+d)²
//
// where d is the change of the weight w, G the sum of the gradients and U that of
// the curvatures, but for a factor. All workers that have values of the feature
// pull the weight and bring their margins up to date.
//
// # The delay
//
// Workers do not wait for each other within a pass. A row of gradients counts the workers that have
// added to it, and is complete when all have that have values of the feature; a
// row of weights has the pass that changed it last. So a reader sees whether a row is complete. The
// gradient of a block contains the outcome of the blocks up to Delay+1 before it, and of
// no later ones, even if they are known. So the result of a pass depends on the delay
// and not on the workers' speed: it is the same on any number of nodes, but for the
// rounding of sums. With a delay of 0, there are two network latencies between two
// turns; a longer delay hides them behind the next turns, and differences in speed as
// well. A pass ends with the outcome of all of its blocks.
//
// # Step lengths without a learning rate
//
// The logistic loss lies below a parabola that touches it at the margin m and
// has the curvature h = tanh(|m|/2) / (2·|m|) ≤ 1/4 (Jaakkola, Jordan, 2000,
// equation 5). For an example with c features of the block, (Σ xⱼ·dⱼ)² ≤
// c·Σ xⱼ²·dⱼ². With V = Σ h·c·x² over examples, G·d + V/2·d² is therefore nowhere
// below the change of the loss. A proximal step by any curvature U > V/2 lowers
// the objective, by (U - V/2)·d² at least; U = V/1.8 is used, as V is an upper
// bound and longer steps are better nearly always.
//
// With a delay, a gradient lacks changes of the blocks that are under way. Each
// pair of features i of a block and j of one under way costs an example at most
// h·|xᵢ·dᵢ·xⱼ·dⱼ| ≤ h/2·(xᵢ²·dᵢ² + xⱼ²·dⱼ²), once for the later of the two. So
// it is enough to count in c the features of all blocks that may be under way
// with this one: Delay before it and Delay after it. (The curvatures h are those
// where the gradients were taken. They may grow until the step, which the bound ignores;
// in all measurements the slack of the other bounds was larger.) A longer delay makes
// larger c and shorter steps, as in theorem 2 of the paper.
//
// # Left out
//
// A weight that is zero and whose gradient is well below L1 will stay zero (the
// condition of Karush, Kuhn and Tucker). It is marked in its row, and no worker computes
// it, pushes it or counts it in c until all weights are checked again.
//
// # Few weights
//
// Where there are few weights and Blocks is 0, they are one block, and workers push the whole
// matrix of curvatures, H = Σ h·x·xᵀ over examples, a row for each weight. No factor c is needed: G·d + d'·H·d/2 is nowhere
// below the change of the loss, and one worker takes all weights to the minimum of this and the
// penalty together, by coordinate descent (Friedman, Hastie, Tibshirani, "Regularization Paths for Generalized Linear Models
// via Coordinate Descent", 2010; with an active set as there). This is the method of newGLMNET (Yuan, Ho, Lin, 2012), but the parabola's
// curvature makes a line search needless: a step by H/s lowers the objective for any s < 2, and s is 1.8.
// No weight is left out, and there is nothing to delay.
type Blocks struct {
	*model
	cfg    BlockConfig
	bounds []int // block b has the places bounds[b] … bounds[b+1]-1
	whole  bool  // there is one block, with its matrix of curvatures
}

// A place is a weight's position in the order of blocks: those of the used
// features, ascending, then the bias.

func kinds(classes int) string {
	if classes == 0 {
		return "values"
	}
	return fmt.Sprintf("%d classes", classes)
}

// NewBlocks checks the settings and the data, which must not change afterwards.
func NewBlocks(cfg BlockConfig, data *libsvm.Splits) (*Blocks, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if n := len(data.Train.Classes); n != 2 {
		return nil, fmt.Errorf("linear: blocks train two classes, and the labels are %s: take the solver stochastic", kinds(n))
	}
	m, err := newModel(data, cfg.Bias, 0, weightDim-1)
	if err != nil {
		return nil, err
	}
	rows := uint64(data.Train.Width)
	m.tables = []godwit.Table{{Name: WeightTable, Rows: rows, Dim: m.dim, Counts: true}}
	if cfg.Bias {
		m.tables = append(m.tables, godwit.Table{Name: BiasTable, Rows: 1, Dim: m.dim, Counts: true})
		rows++
	}
	t := &Blocks{model: m, cfg: cfg}
	switch {
	case cfg.Blocks > 0:
		t.bounds = cut(m, cfg.Blocks)
	case m.places() <= maxWhole:
		t.bounds, t.whole = []int{0, m.places()}, true
	default:
		t.bounds = cut(m, manyBlocks)
	}
	m.tables = append(m.tables, godwit.Table{Name: GradientTable, Rows: rows, Dim: t.gradientDim(), Counts: true})
	return t, nil
}

// gradientDim is the floats of a row of gradients.
func (t *Blocks) gradientDim() int {
	if t.whole {
		return gradientDim + t.places()
	}
	return gradientDim
}

// cut divides the places into at most n blocks with about equally many values.
func cut(m *model, n int) []int {
	total := len(m.data.Train.Features)
	if m.bias {
		total += m.data.Train.Len()
	}
	bounds, done := []int{0}, 0
	for i := range m.used {
		if done*n >= total*len(bounds) && i > bounds[len(bounds)-1] {
			bounds = append(bounds, i)
		}
		done += int(m.counts[i])
	}
	return append(bounds, m.places())
}

// places is the number of weights that are trained.
func (m *model) places() int {
	if m.bias {
		return len(m.used) + 1
	}
	return len(m.used)
}

// blocks is the number of blocks.
func (t *Blocks) blocks() int { return len(t.bounds) - 1 }

// sharers returns, by place, how many of so many workers have values of it.
func (m *model) sharers(workers int) []int32 {
	n, set := make([]int32, m.places()), m.data.Train
	place := m.placing()
	last := make([]int32, len(n)) // the worker counted last, from 1
	for w := range workers {
		for i := w; i < set.Len(); i += workers {
			_, fs, _ := set.Row(i)
			for _, f := range fs {
				if p := place.of(f); last[p] != int32(w+1) {
					last[p] = int32(w + 1)
					n[p]++
				}
			}
		}
	}
	if m.bias {
		n[len(n)-1] = int32(min(workers, set.Len()))
	}
	return n
}

// A placing finds the places of used features.
type placing struct {
	used []uint32
	all  []int32 // the place of each feature, if so many features are no more memory than the data; else nil
}

func (m *model) placing() placing {
	p := placing{used: m.used}
	if m.data.Train.Dense() {
		p.all = make([]int32, m.data.Train.Width)
		for i, f := range m.used {
			p.all[f] = int32(i)
		}
	}
	return p
}

// of returns the place of a feature that is used.
func (p placing) of(f uint32) int32 {
	if p.all != nil {
		return p.all[f]
	}
	i, _ := slices.BinarySearch(p.used, f)
	return int32(i)
}

// Lockstep implements [train.Lockstep].
func (t *Blocks) Lockstep() bool { return true }

// Fingerprint names settings and data.
func (t *Blocks) Fingerprint() string {
	return fmt.Sprintf("linear blocks %+v on %s", t.cfg, t.fingerprint())
}

// Chunks implements [train.Task]: a worker keeps to its part of the examples, of which it
// knows the margins, and all workers go through the blocks in one order.
func (t *Blocks) Chunks() int { return 0 }

// Trainer returns a worker's share: every part.Count-th example, and one of part.Count
// parts of each block's weights.
func (t *Blocks) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[Turn], error) {
	k, err := t.keys(w.Model())
	if err != nil {
		return nil, err
	}
	return newBlockTrainer(t, w, k, part)
}

// Evaluate evaluates the model on the validation examples, or on the test examples
// where there are none.
func (t *Blocks) Evaluate(ctx context.Context, env *train.Env, epoch int) (train.Evaluation, error) {
	return t.evaluate(ctx, env, epoch)
}
