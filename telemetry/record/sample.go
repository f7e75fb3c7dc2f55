package record

import (
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// Version is that of the format. Version 1 is the first.
const Version = 1

// The first line of a file says which of the two it is.
const (
	samplesFormat = "godwit-samples"
	eventsFormat  = "godwit-events"
)

// A Header is the first line of a file of samples.
type Header struct {
	Format  string        `json:"format"`  // "godwit-samples"
	Version int           `json:"version"` // of the format
	Run     string        `json:"run"`     // name of the run
	Policy  string        `json:"policy"`  // of the run
	Node    godwit.NodeID `json:"node"`    // whose samples they are
	Nodes   int           `json:"nodes"`   // of the run
	Workers int           `json:"workers"` // of the node
	Host    string        `json:"host"`    // name of the node's machine
	PID     int           `json:"pid"`     // its process
	Start   int64         `json:"start"`   // what samples count their time from: nanoseconds since 1970 by the node's clock; 0 in a simulation
	Segment int           `json:"segment"` // number of the file, from 1
}

// A Sample is what a node did since it began, and what it has under way, at a time. Counters only
// grow. Times are in nanoseconds.
type Sample struct {
	Time      int64          `json:"t"`              // since the header's start
	Items     int64          `json:"items"`          // examples that the node trained, of this run
	Steps     int64          `json:"steps"`          // the sum of its workers' clocks
	Clock     godwit.Clock   `json:"clock"`          // of the worker that is furthest,
	Slowest   godwit.Clock   `json:"slowest"`        // … and of the one that is least far
	Process   Process        `json:"process"`        // of the node, and of others if they are in it
	Waits     []Wait         `json:"waits"`          // of workers, by cause
	Accesses  Accesses       `json:"accesses"`       // keys of pulls and pushes
	Calls     uint64         `json:"calls"`          // pulls and pushes
	SlowCalls uint64         `json:"slow"`           // … that could not be served at once
	Rounds    uint64         `json:"rounds"`         // sync rounds
	RoundTime int64          `json:"round_ns"`       // processor time of rounds and of acting on intents
	Moves     uint64         `json:"moves"`          // keys that moved here
	Copies    uint64         `json:"copies"`         // replicas set up here,
	Drops     uint64         `json:"drops"`          // … and given up
	Deltas    uint64         `json:"deltas"`         // replica updates sent
	Refreshes uint64         `json:"refreshes"`      // rows sent to replicas
	Learned   uint64         `json:"learned"`        // keys asked for because of accesses that were not announced, or not in time
	Owned     int            `json:"owned"`          // main copies that are here
	Replicas  int            `json:"replicas"`       // replicas that are here
	Sent      []Sent         `json:"sent"`           // records, by kind, before lists of keys and compression
	SentBytes uint64         `json:"sent_bytes"`     // to other nodes, on the network
	Received  uint64         `json:"received_bytes"` // from other nodes
	Frames    uint64         `json:"frames"`         // sent
	Peers     []Peer         `json:"peers"`          // the other nodes
	Leads     Times          `json:"leads"`          // from asking for a key, because of an intent, to its arrival
	Intents   Intents        `json:"intents"`        // what workers announced
	Announced int64          `json:"announced"`      // keys that intents hold now
	Memory    map[string]int `json:"memory"`         // bytes beside the Go heap, by what for
	Waste     Waste          `json:"waste"`          // of a sample of the keys
	Whole     []Whole        `json:"whole"`          // tables, all of their keys
	Tables    []Table        `json:"tables"`         // of traced keys, by table
	Hot       []trace.KeyUse `json:"hot"`            // the traced keys with the most accesses or refreshes; at most 48
	Half      int            `json:"half"`           // so few of the traced keys have half of their refreshes,
	Most      int            `json:"most"`           // … and so few four fifths
	Lost      uint64         `json:"lost"`           // events that the trace lacks
}

// A Process is what an operating system knows of a process.
type Process struct {
	Processor int64  `json:"cpu_ns"`     // time
	Delayed   int64  `json:"delayed_ns"` // for which its threads were ready and had no processor, in sum; 0: not known
	GC        int64  `json:"gc_ns"`      // … of which the collection of garbage took so much
	Pauses    int64  `json:"pauses_ns"`  // for which garbage collection stopped everything
	Heap      uint64 `json:"heap"`       // bytes of living objects on the Go heap, and such as were not collected yet
	Used      uint64 `json:"used"`       // bytes of the machine's memory that it has; 0: not known
	Available uint64 `json:"available"`  // bytes that processes can still get; 0: not known
	Stalled   int64  `json:"stalled_ns"` // for which some process of the machine waited for memory; 0: not known
}

// A Wait is how often the workers waited for something, and how long, summed over workers.
type Wait struct {
	For  string `json:"for"` // as in telemetry.Wait
	N    uint64 `json:"n"`   // how often
	Time int64  `json:"ns"`  // how long
}

// Accesses are keys by where pulls and pushes were served, as in node.Stats.
type Accesses struct {
	Local   uint64 `json:"local"`   // at the main copy
	Replica uint64 `json:"replica"` // at a replica
	Ahead   uint64 `json:"ahead"`   // by values fetched ahead
	Queued  uint64 `json:"queued"`  // after waiting for the key on its way
	Remote  uint64 `json:"remote"`  // by messages
	Late    uint64 `json:"late"`    // were announced, and found the key on its way
}

// All returns the number of accesses.
func (a Accesses) All() uint64 { return a.Local + a.Replica + a.Ahead + a.Queued + a.Remote }

// Sent are the bytes of records of a kind.
type Sent struct {
	Record string `json:"record"` // its kind, as "refresh"
	Bytes  uint64 `json:"bytes"`  // of all such records
}

// A Peer is what a node knows of the way to another one.
type Peer struct {
	Node    godwit.NodeID `json:"node"`    // the peer
	Answers Times         `json:"answers"` // operations that only this peer was asked for
	Last    Times         `json:"last"`    // operations that several were asked for, and that it answered last
	Bytes   uint64        `json:"bytes"`   // sent
	Queued  int           `json:"queued"`  // bytes that have not left
}

// Times are durations of which the number and the sum are known.
type Times struct {
	N   uint64 `json:"n"`  // how many
	Sum int64  `json:"ns"` // of all, in nanoseconds
}

// Mean returns the mean; 0 if there are none.
func (t Times) Mean() time.Duration {
	if t.N == 0 {
		return 0
	}
	return time.Duration(t.Sum / int64(t.N))
}

// Intents are what workers announced.
type Intents struct {
	N     uint64 `json:"n"`      // calls
	Keys  uint64 `json:"keys"`   // of them
	Ahead uint64 `json:"clocks"` // between the call and the start of the intent, summed over calls
}

// Waste says what the adaptation was good for; see [telemetry.Waste].
type Waste struct {
	Accesses      uint64 `json:"accesses"`       // by workers
	Refreshes     uint64 `json:"refreshes"`      // rows that came for replicas and were followed by the next one, or the end
	Unread        uint64 `json:"unread"`         // … not accessed before
	Drops         uint64 `json:"drops"`          // replicas that ended
	DroppedUnread uint64 `json:"dropped_unread"` // … that were not accessed at all
	Intents       uint64 `json:"intents"`        // keys of intents that ended
	Unused        uint64 `json:"unused"`         // … that were not accessed meanwhile
}

// A Whole is what a node's workers accessed of a table, and what became of its keys at the node; see
// [telemetry.Table].
type Whole struct {
	Name      string `json:"name"`      // of the table
	Main      uint64 `json:"main"`      // keys accessed at the main copy,
	Replica   uint64 `json:"replica"`   // … at a replica,
	Missing   uint64 `json:"missing"`   // … and not here
	Moves     uint64 `json:"moves"`     // keys that moved here
	Copies    uint64 `json:"copies"`    // replicas set up,
	Drops     uint64 `json:"drops"`     // … and ended
	Refreshes uint64 `json:"refreshes"` // rows that came for replicas
}

// A Table is what became of the traced keys of a table at the node.
type Table struct {
	Name string `json:"name"` // of the table
	trace.Use
}

// Fill takes what a snapshot has.
func (s *Sample) Fill(x *telemetry.Snapshot) {
	s.Steps, s.Clock, s.Slowest = x.Clocks.Sum, x.Clocks.Furthest, x.Clocks.Slowest
	s.Waits = s.Waits[:0]
	for _, w := range x.Waits {
		s.Waits = append(s.Waits, Wait{w.For, w.N, int64(w.Time)})
	}
	s.Sent = s.Sent[:0]
	for _, k := range x.Sent {
		if k.Bytes > 0 {
			s.Sent = append(s.Sent, Sent{k.Record, k.Bytes})
		}
	}
	s.Peers = s.Peers[:0]
	for _, p := range x.Peers {
		s.Peers = append(s.Peers, Peer{Node: p.Node, Answers: micros(&p.Latency), Last: micros(&p.Last), Bytes: p.Bytes, Queued: p.Queued})
	}
	s.Leads = micros(&x.Leads)
	s.Intents = Intents{N: x.Intents.N, Keys: x.Intents.Keys, Ahead: x.Intents.Ahead}
	s.Announced = x.Announced
	s.Memory = map[string]int{}
	for _, m := range x.Memory {
		s.Memory[m.For] = m.Bytes
	}
	s.Whole = s.Whole[:0]
	for _, t := range x.Tables {
		s.Whole = append(s.Whole, Whole(t))
	}
	w := &x.Waste
	s.Waste = Waste{w.Accesses, w.Refreshes, w.Unread, w.Drops, w.DroppedUnread, w.Intents, w.Unused}
}

// micros returns the number and the sum of times that a histogram has in microseconds.
func micros(h *telemetry.Histogram) Times {
	return Times{h.Count(), int64(h.Sum) * int64(time.Microsecond)}
}
