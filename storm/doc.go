// Storm lets random workers loose on small models, as a user's program would: by
// the public API of Godwit only, on nodes of one process, over memory or sockets,
// and on nodes that are processes, over sockets and etcd, some of which are
// stopped now and then for a while. It judges everything that the workers see by
// docs/guarantees.md.
//
//	go run . -duration 10m
//	go run . -seed 4711      # this storm again
//
// The rows are vector clocks: worker i counts its writes of a key at coordinate i.
// What a worker writes at which of its clocks follows from the seed of the storm
// (type plan), so each process knows of all others what a read must contain, and
// what the rows must be in the end, without asking them. When the rest happens is
// up to the machine, so a seed that failed may pass when it is run again.
//
// The judge (type judge) takes time in proportion to what is read: each read is
// compared with what had been completed, seen and promised when it began.
package main
