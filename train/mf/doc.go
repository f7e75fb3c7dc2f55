// Package mf factorizes sparse matrices: it finds a vector for each row and each
// column such that their products are close to the known cells, in order to predict the
// unknown ones.
//
// A [Task] is trained by [train.Run] through any [godwit.Worker]:
//
//	task, err := mf.New(mf.DefaultConfig(), set)
//	model, err := godwit.NewModel(task.Tables()...)
//	// … a node that serves the model …
//	report, err := train.Run(ctx, env, task, train.Options{Epochs: 30, EvalEvery: 5})
//	rmse, err := task.RMSE(ctx, &env, "test", set.Test)
//	err = export.Write("factors", "mf", func(s *export.Set) error { return task.Export(ctx, env.Workers[0], s) })
//
// # The model
//
// The cell of row u and column i is predicted as μ + bᵤ + cᵢ + pᵤ·qᵢ, where μ is
// the mean of the cells to train, and b and c are biases (Koren, Bell, Volinsky,
// IEEE Computer 42(8), 2009, equation 4); without biases it is pᵤ·qᵢ (equation
// 1). Training minimizes, over the cells to train,
//
//	Σ (x − prediction)² + λ·(|pᵤ|² + |qᵢ|² + bᵤ² + cᵢ²)
//
// with the penalty once for each cell, as in Koren's equations 2 and 5; it is
// the loss NZL2 of Gemulla et al. (KDD 2011, section 5).
//
// # Steps
//
// Under the rule "sgd" a step takes the cells of its batch one after the other,
// each by Koren's update of both vectors,
//
//	p += γ·(e·q − λ·p)    q += γ·(e·p − λ·q)    b += γ·(e − λ·b)    c += γ·(e − λ·c)
//
// on copies of the batch's rows, and then pushes what has changed in them. Where
// no other worker has the rows meanwhile, that is plain SGD on the cells in
// their order, whatever the batch is; where one has, both changes add up. Other
// rules of package optim, such as "adagrad", are given the batch's gradient:
// half that of the loss above, summed over its cells.
//
// The bold driver (section 5 of Gemulla et al.) raises γ by 5 % after an epoch
// in which the loss fell, and halves it after one in which it rose. The loss is
// summed up during training.
//
// A step has 256 cells unless the settings say otherwise. In a run of one node, with SGD and the orders columns and blocks,
// it has more: an eighth of a worker's share over the number of workers, at most 16,384. They share more copies of rows, and
// two workers still seldom have the same column at a time.
//
// # Orders
//
// An order decides in which order a worker trains which cells, and with that how local
// its accesses can be:
//
//	plain    Any cells, at random. No locality: rows and columns are wanted by
//	         all workers all the time.
//	columns  Those of the worker's own rows, column by column, the columns in
//	         random order. Rows stay with their worker (data clustering, as in
//	         Lapse, VLDB 2020, section 2); a column is needed briefly and then
//	         not before the next epoch.
//	blocks   Those of the worker's own rows, in blocks of columns, one a worker.
//	         In each part of an epoch the workers are at different blocks, so
//	         that no two have a row or a column in common (parameter blocking;
//	         DSGD of Gemulla et al.): the result is one that serial SGD could
//	         have had. All synchronize at the end of each part, and move
//	         their next block's columns by Localize.
//
// Rows and columns are distributed to workers so that each has about the same number of
// cells. The order of cells within a column or block is random, and follows from
// the seed, the epoch and the worker's part. The order plain follows from the seed,
// the epoch, the chunk and the step.
//
// # Measured
//
// MovieLens 100k, split u1, default settings, 30 epochs: a test RMSE of 0.925 on
// one node with two workers and on four with one each, and 0.925 … 0.936 on four
// with two each, where 99.9 % of accesses need no message under the policy
// "adaptive". The order blocks reaches 0.925 there under every policy, the same
// in each to four digits, and without any message for a parameter under those
// that move keys. AdaGrad at a rate of 0.1 without the bold driver reaches 0.928
// after ten epochs. What matters most is L2 (0.08 … 0.12), then the dimension:
// 16 costs 0.005.
//
// Workers that hold replicas of the same columns add up steps that they made from
// the same values. Where many do and exchange seldom, that is too much for SGD at
// a high rate: the loss rises and the bold driver halves the rate. AdaGrad is
// less sensitive to it, and under the order blocks it does not occur.
package mf
