// Package filtering has pushes that leave a node go through filters, and keeps what
// these leave of them.
//
// What filters leave of a worker's push is kept by the worker until it pushes to the
// key again, wherever the key is then: it is added before anything else is done, so
// that what is served at the node has it too, and what is not is filtered together
// with it. WaitSync and Close push what is kept by all workers of the node, and
// through no filter. A Set of a key forgets it.
//
// It owns the filters of a node's tables and who may push what is kept ([Filters]),
// the filters' memory of each worker ([Pipeline]), and what they left of its pushes
// ([Residual]).
//
// Goroutines and locks: no goroutine. A Pipeline belongs to its worker's goroutine,
// its Counts apart. A Residual has a lock, as WaitSync, Close and Set of any worker
// of the node take what it has; nothing else is locked or waited for under it.
//
// It calls the filters of the program, the words (package godwit), and packages
// filter, vec and preempt. It never sends or requests anything, and knows of no
// operation: the worker sends what Filter returns and tells Keep how far it came. No
// function crosses upwards.
package filtering
