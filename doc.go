// Package godwit defines the types and the contract of Godwit, a parameter
// server that adapts itself to the task.
//
// A model is a set of tables. A table is a namespace of rows that share one
// value length, update rule and initializer. Keys are consecutive numbers over the
// rows of all tables. A training program runs workers on one or
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
// Intents are optional: a key without an intent is accessed by messages. With
// intents, the server moves a key to the only node that needs it, replicates a key
// that several nodes need, and does so just in time. With steps of 1 ms or longer,
// the default policy neither moves nor replicates keys that are announced for one step:
// it fetches their values ahead of their use.
//
// [PullRange] and [PushRange] read and write whole tables and other ranges of keys of
// any length in bounded memory. [Rows] reads only the rows that are in use, which is
// faster in large tables where few are.
//
// The table's [Rule] decides what a push does. A rule may also decide how copies of a
// row are merged and what a pull returns ([Merger], [Querier]).
//
// # Guarantees
//
// Every key has exactly one owner, which holds the main copy. Synchronous
// operations on a key that is not replicated are sequentially consistent, also
// while the key moves. At a node that holds a replica, reads see the node's own
// writes and never go back in time; other nodes' writes arrive with the next
// sync rounds. No push is lost and none is applied twice, whatever moves. All
// guarantees are listed in docs/guarantees.md.
//
// # Requirements
//
// A [Worker] belongs to one goroutine. Every process of a run describes the
// same [Model] (the fingerprints are compared when a node joins). Buffers
// handed to an asynchronous read must not be touched until Wait has returned.
//
// This package imports no other package of Godwit; the others implement it or use it.
//
// [node.Local]: https://pkg.go.dev/github.com/godwit-ps/godwit/node#Local
package godwit
