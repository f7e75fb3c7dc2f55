// Command interrupt measures what it costs a run to be killed. For each seed it trains
// knowledge-graph embeddings on several node processes without a disturbance; then again, where all processes are
// killed with SIGKILL within an epoch, the run is resumed on one node less, killed again, and resumed on one node. It prints
// the figures on the test data of both. Last, it kills one node of a run, which goes on by itself, and
// prints how long that took. It ends with code 1 if a run does not go on, or if the means of the figures are further apart than undisturbed
// runs of different seeds are, and than a twentieth.
//
//	go run ./internal/interrupt -data fb15k-237
//
// With -gib it writes the checkpoint of a model of that size, and restores it from files that are not in memory, and prints bandwidths
// and memory, beside a plain read and a plain copy (Linux):
//
//	go run ./internal/interrupt -gib 10
package main
