// Package hot finds the keys that a policy treats as hot, and knows them.
//
// It owns the set of hot keys of a node ([Set]) and, while these are to be measured, how
// often each of its workers pulled each key.
//
// Goroutines and locks: Find is one goroutine of the node, which ends with the node or
// when the keys are found. Each worker's counts have a lock, under which nothing else is
// taken; Has takes none.
//
// It calls package host to wait, package placement for the rule by which keys are hot,
// and upwards the functions in [Calls], Hold among them, under no lock. It never sends
// anything to a peer by itself, and asks for no replica: Hold does.
package hot
