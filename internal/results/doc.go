// Results measures what the pages on experiments and benchmarks show, and writes
// the figures as CSV under docs/results and the plots under docs/experiments.
//
//	go run ./internal/results              # make results: all of them, which takes hours
//	go run ./internal/results -list        # which there are
//	go run ./internal/results -match '^delay$' # only those whose name matches this
//	go run ./internal/results -match timing -quick -out run/results
//
// It builds cmd/godwit of the tree that it is started in and runs it, one command
// after the other, because measurements must not disturb each other. A file is
// replaced only after its command succeeded. Each begins with lines of comments
// ("#"): the command, the commit, the date, and the machine with its load before
// and after. A tree whose sources differ from the commit is named as such.
package main
