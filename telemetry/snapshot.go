package telemetry

import (
	"time"

	"github.com/godwit-ps/godwit"
)

// A Snapshot is what a node did since it began, and what it has under way. Counters only grow.
type Snapshot struct {
	Node   godwit.NodeID // whose it is
	Peers  []Peer        // the other nodes
	Waits  []Wait        // of workers, by cause
	Sent   []Sent        // records by their kind
	Tables []Table       // those of the model

	Latency Histogram // µs of operations that waited for several peers, or for a key on its way here
	Leads   Histogram // µs from asking for a key to its arrival

	Clocks    Clocks  // of the workers
	Intents   Intents // that workers announced
	Announced int64   // keys that intents hold
	Asked     int64   // bytes of rows that were asked for and have not come
	Open      int     // operations of workers that are not over

	Memory []Memory // of rows and what is known of keys, by what it is for
	Waste  Waste    // what the adaptation was good for
}

// Clocks are how far the workers of a node are.
type Clocks struct {
	Sum               int64        // steps of all workers
	Furthest, Slowest godwit.Clock // of the worker that is furthest, and of the one that is least far
}

// Intents are what workers announced, from the begin on.
type Intents struct {
	N     uint64 // calls
	Keys  uint64 // that they named
	Ahead uint64 // clocks from the call to the start of its intent, summed over calls
}

// A Memory is how many bytes something takes.
type Memory struct {
	For   string // "rows", "sides" (what is known of copies), "hints" or "homes" (where keys are)
	Bytes int    // that it takes
}

// A Peer is what a node knows of the way to another one.
type Peer struct {
	Node          godwit.NodeID // the peer
	Latency       Histogram     // µs of operations that only this peer was asked for
	Last          Histogram     // µs of operations that several were asked for, and that it answered last
	Bytes, Frames uint64        // sent
	Plain         uint64        // bytes before compression
	Queued        int           // bytes that have not left
}

// A Table is what the node's workers accessed of a table, and what became of its keys at the node.
type Table struct {
	Name                   string // of the table
	Main, Replica, Missing uint64 // keys that were accessed: at the main copy, at a replica, and not here
	Moves                  uint64 // keys that moved here
	Copies, Drops          uint64 // replicas that were set up, and that ended
	Refreshes              uint64 // rows that came for replicas
}

// A Wait is how often the workers waited for something, and how long.
type Wait struct {
	For  string        // "answers", "room", "bound", "window", "barrier", "sync" or "others"
	N    uint64        // how often
	Time time.Duration // summed over workers
}

// Sent are the bytes of records of a kind, before lists of keys and compression.
type Sent struct {
	Record string // its kind, as "refresh"
	Bytes  uint64 // of all such records
}

// Waste says what the adaptation of a node was good for, measured on a sample: one of
// 256 keys, the same at all nodes, but every event and access of these.
type Waste struct {
	Accesses uint64 // by workers

	Refreshes, Unread    uint64    // rows that came for replicas and were followed by the next one, or the end; … not accessed before
	Drops, DroppedUnread uint64    // replicas that ended; … that were not accessed at all
	Intents, Unused      uint64    // keys of intents that ended; … that were not accessed meanwhile
	Touches              Histogram // of keys that moved away: accesses since they had come
	Age                  Histogram // µs since the refresh before, of replicas that were refreshed
	AgeClocks            Histogram // … in clocks of the worker that is furthest
}

// A Histogram counts values by their order of magnitude: Of[i] those below 2^i that are in no
// element before. The last element counts all that are larger.
type Histogram struct {
	Of  []uint64 // values by order of magnitude
	Sum uint64   // of the values
}

// Count returns how many values were counted.
func (h *Histogram) Count() (n uint64) {
	for _, m := range h.Of {
		n += m
	}
	return n
}
