// Package godwit holds the words and the contract of Godwit, a parameter
// server that adapts itself to the task.
//
// A model is a set of tables. A table is a namespace of rows that share one
// value length, update rule and initializer; the rows of all tables are
// numbered through as ordered keys. A training program runs workers on one or
// more nodes. Each worker holds a [Worker], through which it reads (Pull) and
// updates (Push) any key from anywhere:
//
//	w.Intent(batch.Keys, clock, clock+1)  // far ahead: "this batch needs these keys"
//	...
//	w.Pull(ctx, batch.Keys, values)       // local by the time the batch is trained
//	compute(values, gradients)
//	w.Push(ctx, batch.Keys, gradients)
//	w.Advance()                           // the worker's clock: one batch done
//
// Workers belong to a node: package node starts one in this process, alone
// ([node.Local]) or as a member of a cluster. Package train is a training loop on
// top of them, and package job runs a task on many machines.
//
// Intents are optional: a key that nobody announced is reached by message.
// With them, the server moves a key to the only node that wants it, replicates
// a key that several nodes want, and does so just in time.
//
// Whole tables and other ranges of keys are read and written by [PullRange] and
// [PushRange], of any length in bounded memory; of large tables in which few rows
// are in use, [Rows] reads those.
//
// What a push does is the table's [Rule]; how copies of a row meet, and what a
// pull gets of it, can be left to the rule as well ([Merger], [Querier]).
//
// # What is promised
//
// Every key has exactly one owner, which holds the main copy. Synchronous
// operations on a key that is not replicated are sequentially consistent, also
// while the key moves. At a node that holds a replica, reads see the node's own
// writes and never go back in time; other nodes' writes arrive with the next
// sync rounds. No push is lost and none is applied twice, whatever moves. The
// full table is in docs/guarantees.md.
//
// # What is demanded
//
// A [Worker] belongs to one goroutine. Every process of a run describes the
// same [Model] (the fingerprints are compared when a node joins). Buffers
// handed to an asynchronous read stay untouched until it was waited for.
//
// This package imports nothing of Godwit; everything else implements it or is
// written against it.
//
// [node.Local]: https://pkg.go.dev/github.com/godwit-ps/godwit/node#Local
package godwit
