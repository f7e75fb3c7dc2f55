// Package train is the training loop of all tasks: epochs, workers, early intents,
// losses of all nodes, evaluation, and early stopping.
//
// A task is written against [godwit.Worker] alone and supplies only its own
// mathematics, as a [Task]: how to fill a [Batch] with the keys that it will
// need, how to train it, and how to evaluate the model. [Run] does the rest, the
// same on every node of a run:
//
//	task, err := kge.New(config, graph)
//	report, err := train.Run(ctx, env, task, train.Options{Epochs: 30, EvalEvery: 5})
//
// # Batches ahead
//
// Each worker loads its batches long before it trains them, and signals an
// intent for their keys, and for their samples, at the clock at which it will
// train them: one batch is one clock. Early intents cost nothing, since the
// server decides itself when to act on them. So the distance is not an option: a worker
// loads as many batches ahead as a bounded memory allows, across the ends of epochs too.
//
// # Order and reproducibility
//
// A worker trains its batches in order, and batches are loaded in order by the
// worker's own goroutine. Whatever a task draws from a random source seeded by
// the run and the worker's part is therefore the same in every run, and a run
// of a single worker is reproducible bit by bit. With several workers, updates reach the
// server in any order, and results differ slightly between runs.
//
// # The end of a run
//
// A run ends after its epochs, when an evaluation has not improved for a while
// ([Options].Patience), or when it is asked to stop ([Env].Stop). The model stays
// as it was last trained: it is not reset to the best epoch, which the [Report] names. A
// task whose loss is not finite any more fails with [ErrDiverged].
package train
