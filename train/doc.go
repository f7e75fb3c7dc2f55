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
// # Chunks
//
// A task divides an epoch into chunks, and Run leases them to workers while the run goes on
// (package schedule): each node trains its own chunks first, and a node that is through takes
// the last ones of those that are behind. Every chunk is trained once an epoch. A task that
// needs an order of its own says so ([Task].Chunks): then each worker has its part of the data.
//
// # Batches ahead
//
// Each worker loads its batches long before it trains them, and signals an
// intent for their keys, and for their samples, at the clock at which it will
// train them: one batch is one clock. Early intents cost nothing, since the
// server decides itself when to act on them. So the distance is not an option: a worker
// loads as many batches ahead as a bounded memory and its chunks allow, across the ends of
// epochs too. It gets fewer chunks ahead towards the end of an epoch, so that none is left
// waiting at a slow worker.
//
// # Order and reproducibility
//
// A worker trains its batches in order, and batches are loaded in order by the
// worker's own goroutine. Whatever a task draws follows from the seed, the epoch, the chunk
// and the step ([At.Seed]), and not from who trains the chunk. A run
// of a single worker is reproducible bit by bit. With several workers, updates reach the
// server in any order, and who trains which chunk follows from who is through first, so
// results differ slightly between runs.
//
// # The end of a run
//
// A run ends after its epochs, when an evaluation has not improved for a while
// ([Options].Patience), or when it is asked to stop ([Env].Stop). The model stays
// as it was last trained: it is not reset to the best epoch, which the [Report] names. A
// task whose loss is not finite any more fails with [ErrDiverged].
package train
