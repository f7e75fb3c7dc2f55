package main

import (
	"fmt"
	"strings"

	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train/linear"
	"github.com/godwit-ps/godwit/train/task"
)

func init() { trainTasks = append(trainTasks, linearTask) }

var linearLegend = fmt.Sprintf(`accuracy, AUC, log loss (two classes), accuracy, log loss, macro F1 (several), RMSE,
MAE, R2 (values): of the test examples; sparsity: the share of weights of features seen
in training that are exactly 0 (untrained: of at most %d examples).`, task.UntrainedExamples)

func linearTask() cli.Task {
	s := task.DefaultLinear()
	return cli.Task{
		Settings: s,
		Short:    "Train sparse linear models or factorization machines",
		About: `Train the weights of sparse features that tell classes apart or predict a value, and
evaluate them on examples held out of training.

The examples are generated, with a sparse truth to be found, or read from files
in the format of LibSVM and libFM (or .gz): an example a line, a label
and its features with their values, as "1 3:1 11:0.5". Two different labels are two
classes, as 1 and -1; labels of which one is no whole number are values. Whole numbers
of more than two kinds can be either: --target says which. --data is such a file,
beside which there may be its tests, with ".t" in their name; or a folder of
files that have train, valid and test in their names. What has no file is held
out of the examples to train.

Features that stand in few examples to train say little and cost as much as
others: --min-count leaves them out, of what is generated too. That saves rows
and messages and changes the model, so no feature is left out unless you say so.

The solver "stochastic" takes a step for a few examples at a time, without
waiting. "blocks" takes a step for some features at a time, by all examples:
workers wait for each other, there is no learning rate, the loss (which has the
penalty in it) never rises, and the outcome is the same on any number of nodes.`,
		Example: `  godwit train linear                          # one node
  godwit train linear --nodes 4                # four, as processes on this machine
  godwit train linear --data a9a.gz            # and a9a.t.gz, if it is there
  godwit train linear --data clicks --hash 22 --min-count 5 --export weights
  godwit train linear --data a9a.gz --solver blocks --epochs 20 --nodes 4
  godwit train linear --data frappe --factors 16 --epochs 10
  godwit train linear --data digits.libsvm --target classes
  godwit train linear --data prices.libsvm     # prices as 12.5 are values`,
		Data:   "`file or folder` of the examples (default: they are generated)",
		Legend: linearLegend,
		DataFlags: func(g cli.Group) {
			g.IntVar(&s.HashBits, "hash", s.HashBits, "hash the names of features to numbers of so many `bits`; 0: they are numbers")
			g.StringVar((*string)(&s.Target), "target", string(s.Target), "what labels are, by `name`: "+string(libsvm.Auto)+", "+string(libsvm.ToClasses)+", "+string(libsvm.ToValues))
			g.IntVar(&s.MinCount, "min-count", s.MinCount, "leave out features that stand in fewer training `examples`; 1: keep all")
			g.IntVar(&s.Share.Valid, "hold-valid", s.Share.Valid, "hold out the first and every `n`th of the others for validation, where there is no file; 0: none")
			g.IntVar(&s.Share.Test, "hold-test", s.Share.Test, "hold out the first and every `n`th example from there for the test, where there is no file; 0: none. Shuffle files whose labels alternate")
			g.IntVar(&s.Examples.Examples, "examples", s.Examples.Examples, "`number` of generated examples")
			g.IntVar(&s.Examples.Features, "features", s.Examples.Features, "`number` of their features")
			g.IntVar(&s.Examples.Classes, "classes", s.Examples.Classes, "`number` of their classes; 0: their labels are values")
			g.IntVar(&s.Examples.PerExample, "per-example", s.Examples.PerExample, "`number` of features of each")
			g.IntVar(&s.Examples.Relevant, "relevant", s.Examples.Relevant, "`number` of features that bear on the label")
			g.Float64Var(&s.Examples.Exponent, "zipf", s.Examples.Exponent, "how unequally popular features are: `exponent` of Zipf's law, 0 … 2")
		},
		ModelFlags: func(g cli.Group) {
			g.IntVar(&s.Factors, "factors", s.Factors, "`floats` of a feature's factor, for a factorization machine; 0: a linear model")
			g.BoolVar(&s.Bias, "bias", s.Bias, "add a bias")
			g.Float32Var(&s.FactorStd, "init", s.FactorStd, "standard deviation of the factors' first values")
			g.Float32Var(&s.L1, "l1", s.L1, "weight of the weights' magnitudes, against the summed loss")
			g.Float32Var(&s.L2, "l2", s.L2, "weight of half their squares, likewise")
			g.Float32Var(&s.FactorL2, "factor-l2", s.FactorL2, "weight of half the factors' squares, for each example that they are in")
		},
		TrainingFlags: func(g cli.Group) {
			g.StringVar(&s.Solver, "solver", s.Solver, "`name`: "+task.Stochastic+", "+task.Blocks)
			g.IntVar(&s.ByBlocks.Blocks, "blocks", s.ByBlocks.Blocks, "`number` of blocks that the features are cut into; 0: as many as the features ask for")
			g.IntVar(&s.ByBlocks.Delay, "delay", s.ByBlocks.Delay, "`blocks` that may be under way before one's outcome is seen")
			g.Float32Var(&s.ByBlocks.KKT, "kkt", s.ByBlocks.KKT, "leave out zero weights whose gradient is below this `share` of --l1; 0: none")
			g.IntVar(&s.ByBlocks.Recheck, "recheck", s.ByBlocks.Recheck, "look at those again every so many `epochs`")
			g.IntVar(&s.Batch, "batch", s.Batch, "`examples` of a step")
			g.StringVar(&s.Rule, "rule", s.Rule, "update rule of the weights, by `name`: "+strings.Join(linear.Rules(), ", "))
			g.Float32Var(&s.LR, "lr", s.LR, "its learning rate")
			g.Float32Var(&s.Beta, "beta", s.Beta, "what dampens the first steps of ftrl")
			g.Float32Var(&s.FactorLR, "factor-lr", s.FactorLR, "learning rate of the factors")
		},
	}
}
