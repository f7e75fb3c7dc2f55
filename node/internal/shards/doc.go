// Package shards is the rows of a node, in shards, and what is done to them: by workers,
// whose keys are here ([Access]), by the records of peers ([Server]), by the requests and
// intents of this node ([Set.Request], [Set.Want]) and by sync rounds ([Set.Round]).
//
// It owns the shards' locks (latches), which are held for the time of a few memory
// accesses, seldom of a sync round, and never while something is waited for. Reads of rows
// that are here take no lock where the processor allows it: they are verified. It has no
// goroutines of its own. Which shards have work for a round is a bit each, beside a bell.
//
// It calls package protocol, which decides, and sends by a [link.Sender] under the shard's
// lock, so that records are sent in the order in which things happened. It calls one function
// that is above it, under the lock: ask of [Set.Request], by which a pull that waits for a
// clock is asked for. It never waits for anything but a shard, and knows neither operations
// nor clocks.
package shards
