// Package linear trains sparse linear models for two classes, several classes, or values, and
// factorization machines, which also weigh pairs of features that occur together.
//
// Two tasks train the same model on the same data:
//
//   - [New]: stochastic gradients, asynchronously. Each worker pulls the weights
//     of a batch's features and pushes their gradients; the table's rule makes the
//     step: FTRL-proximal or AdaGrad with a proximal step. With Factors it is
//     a factorization machine.
//   - [NewBlocks]: delayed block proximal gradient, by all examples at once for
//     some features at a time. Its objective never rises. It trains two classes.
//
// Both are trained by [train.Run] through any [godwit.Worker]:
//
//	task, err := linear.New(linear.DefaultConfig(), splits)
//	model, err := godwit.NewModel(task.Tables()...)
//	// … a node that serves the model …
//	report, err := train.Run(ctx, env, task, train.Options{Epochs: 5, EvalEvery: 1})
//	quality, err := task.EvaluateOn(ctx, &env, "test", splits.Test)
//	err = export.Write("weights", "linear", func(s *export.Set) error { return task.Export(ctx, env.Workers[0], s) })
//
// # The model
//
// The margin of an example x is m = b + Σ wⱼ·xⱼ, and for a factorization machine
// (Rendle, ICDM 2010, equation 1) Σ_{i<j} ⟨vᵢ, vⱼ⟩·xᵢ·xⱼ besides. The probability
// of the positive class is 1/(1+e⁻ᵐ). What is minimized is
//
//	F(w) = Σ log(1 + e^(-y·m)) + L1·Σ|wⱼ| + L2/2·Σ wⱼ²
//
// over examples with labels y = ±1. Of more than two classes, each has weights, a bias and factors
// of its own, and so a margin; the probabilities are the softmax of the margins, and the loss is -log of that
// of the right class. Where labels are values, the margin predicts (y - center)/scale, with the mean and
// the standard deviation of the labels to train, and the loss is half its squared
// error; without a bias the center is 0. So penalties and rates mean the same in
// all units. What is exported and reported is in the units of the labels.
//
// The loss is summed, not averaged, so L1 and
// L2 weigh against the losses of all examples, and a feature that its examples do not
// support enough gets exactly the weight 0. The bias b and the factors v are not
// in the penalty; factors have a weight decay of their own.
//
// # Measured
//
// On a9a (32,560 examples of 123 features), with the default settings, a
// twentieth of them held out:
//
//	solver                     passes  nodes  test accuracy  AUC    log loss
//	FTRL                       5       1 / 4  0.850 / 0.850  0.902  0.324
//	AdaGrad, proximal          5       1 / 4  0.850 / 0.850  0.902  0.324
//	blocks                     20      1 / 4  0.849 / 0.849  0.902  0.325
//
// On Frappe's validation file (57,722 examples, a fifth held out for the test),
// in ten passes: a linear model has an accuracy of 0.866, 16 factors 0.912, 64
// factors 0.926. The weight decay of the factors matters most, then their
// number.
//
// Features that occur in few examples cost rows and messages and improve the model little.
// [libsvm.Splits.KeepFrequent] leaves them out before a task is made, and a
// feature that is left out has no row in use. On 51,300 examples of 15 features
// that are informative and 10 names each that are not, hashed to 22 bits, FTRL in five passes
// on two nodes, adaptive and static (in brackets):
//
//	least  features  values   sent MB      memory MB    test accuracy  AUC
//	1      219,562   all      15.5 (61.0)  14.1 (10.3)  0.840          0.924
//	2      43,023    86 %     12.1 (51.0)  5.0 (4.5)    0.843          0.924
//	5      11,369    80 %     6.5 (46.6)   4.4 (4.3)    0.843          0.925
//	20     3,973     75 %     3.9 (43.0)   4.3 (4.2)    0.844          0.926
//
// Where few features are rare it changes little: of Frappe's 5,274 features a
// least count of 5 keeps 4,740 and 99.7 % of the values, and on a9a it leaves
// out none.
//
// "godwit experiment delay" measures the benefit of a delay: see docs/experiments.md.
//
// # Reproducibility
//
// The order of examples follows the seed, the epoch, the chunk and the step alone. A
// task of [NewBlocks] gives each worker a part of the examples, by its number. So a run
// of one worker is reproducible bit by bit.
package linear
