// Gate measures what several nodes cost in processor time, and fails when that has
// become more.
//
//	go run ./internal/gate                 # make bench-gate
//	go run ./internal/gate -match kge      # only tasks whose name contains this
//	go run ./internal/gate -write          # measure, and make that the baseline
//
// For every task of "godwit train" it trains small generated data on one node and on
// four, each a process with one worker, in turn. Its figure is the processor time of
// all processes for an example on four nodes over that on one. Processor time does
// not depend on how busy the machine is as much as time does, and alternating runs
// meet the same machine; medians are compared.
//
// Four processes on few cores are slower than one on an idle machine even if they have
// nothing to do with each other: they share caches, memory and often the cores themselves. So each round
// also trains on one node four times at once, and the ratio to these is what is left to
// the parameter server. It is shown only.
//
// The time is read from the clocks of the processes (Linux) when a line of the run
// tells that an epoch has ended. Reading data, the start of the nodes and
// evaluations lie outside. The first epoch is shown apart: in it rows are made and
// find their places.
//
// A task is worse when the median of its ratios exceeds that of the baseline by more
// than the tolerance, and all ratios of the baseline. It is then measured once more, and all its rounds count. Exit
// codes: 0 not worse, 1 worse, 2 something failed.
package main
