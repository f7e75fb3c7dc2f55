// Package bench measures the paths of a node: what a pull, a push, a message or
// a step of training costs here, as a ratio to what the machine does without a
// parameter server.
//
// A [Case] sets up a path and its baselines, programs that do the same work
// without locks, lookups and messages. They run in short turns, one after the
// other, so that all meet the same machine, however busy it is; a ratio is the
// median of the turns' ratios. The command "godwit bench" and this package's
// Go benchmarks run the same cases.
package bench
