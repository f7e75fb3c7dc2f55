// Package ahead fetches values for a worker ahead of their use: of keys that the worker announced for
// one step and that are elsewhere.
//
// It owns a [Fetcher] for each worker, with what was fetched ([Buffer]) and how long the worker's steps
// take. It belongs to the worker's goroutine; it has no lock and no goroutine.
//
// It calls planner for the steps that are due, shards to see what is elsewhere, operation to see what
// is complete, and the worker to ask and to wait ([Asker]). It never waits for room, and never
// touches a row.
//
// A value that was fetched is the main copy's as of a moment between the step before its use and
// the use. It may be used as if it had been read at that moment. So the worker has it no longer
// when it has asked for the key anew, or has pushed to it or set it at its owner meanwhile, and not
// if a row of the key has left this node since, or moves here: the worker may have read that row. Where more rows left its shard than are remembered, any may have been
// the key's.
//
// Steps are long if what they compute takes 1 ms or more, and from less where steps have many keys, which they use once in a while, unless these stay (returns.go): a few
// keys are on trial, which come in any case. They are long from 16 ms on where they use the same keys again and again, of tables whose reads may lag,
// and from later on where they use the same keys and it takes long, beside what they compute, to fetch the others' values (pace.go).
//
// Where values take longer to come than a step lasts, they are fetched several steps ahead (depth.go),
// also those of keys that the steps before use ([Buffer.Own]): the row is fetched, and the worker adds to it what it has
// pushed since it asked. That is exact, as what the worker asks of a key and pushes to it goes by the key's
// home then, and so keeps its order.
package ahead
