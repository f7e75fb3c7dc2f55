// Package sim is a cluster of simulated nodes: many nodes in one goroutine,
// under one seed, in virtual time. [New] makes one, [Cluster.Run] runs a training
// program on all of its workers, and the [Result] says how long that took and what
// was sent. [Storm] runs random programs and judges what they saw.
//
// What runs is the real thing: the protocol, the shell of package node with its
// locks, queues, windows and rounds, and training code that is written against
// godwit.Worker. Modelled are only time, the network ([Network]) and what
// computing costs ([Compute]). Whatever happens in a run follows from its
// configuration and seed: the same run gives the same order of the same frames,
// and so the same [Result.Hash], bit for bit.
//
// # How it runs
//
// Workers, sync rounds, planners and whatever else would be a goroutine of a node are
// coroutines. One runs at a time, until it waits; what it did then wakes others
// of the same node. Between nodes there are only events in a queue, ordered by
// virtual time: a frame arrives, a frame is handled, a pause is over. When no
// event is left but that nodes look whether others live, for longer than that takes,
// and a program still waits, it would wait for ever: that is an
// error that names the operations.
//
// A program that blocks in any way of its own (a channel, a lock, a sleep) stops
// the simulation. It waits through its worker and its train.Env only, and runs
// in parallel by Env.Fork.
//
// # What passes time
//
//	worker   an access to a key, and a step: between its reads and its first
//	         write (or Advance, if it writes nothing)
//	server   a frame and each of its records, before they take effect; a key
//	         that a sync round begins, ends or sends
//	network  a frame at the sender's and at the receiver's interface, by its
//	         bytes, and its way between them
//
// Workers and what the server does share the node's cores ([Compute].Cores). If that is 0, each worker has
// a core of its own, and what the server does shares the node's server cores. Frames of one connection arrive
// and are handled in the order in which they were sent, those of different connections in any.
//
// # What is checked
//
// [Cluster.Check] looks at everything when a run is over and nothing is left to
// do; with Config.Watch, the keys of a frame are looked at after each frame.
// What workers see is for the program to judge: [Storm] does.
package sim
