package godwit

import (
	"fmt"
	"math"
)

// A Key names one row of the model: an ordered number, unique across tables.
// [Model.Key] makes one from a table and a row.
type Key uint64

// A NodeID is the number of a node (one process) within a run, 0 … n-1. The
// coordinator hands it out when the node joins.
type NodeID uint16

// NoNode is the id of no node.
const NoNode NodeID = math.MaxUint16

// MaxNodes bounds the number of nodes of a run.
const MaxNodes = int(NoNode)

// A WorkerID names a worker: the node that it runs on and its number there,
// 0 … workers per node - 1.
type WorkerID struct {
	Node  NodeID // the node that the worker runs on
	Local int    // its number there
}

func (w WorkerID) String() string { return fmt.Sprintf("worker %d.%d", w.Node, w.Local) }

// A Clock is a worker's logical time: it starts at 0 and [Worker.Advance]
// raises it by one. Intents are given in clocks. Clocks of different workers are
// comparable only as far as the workers advance in step. Where a table bounds the
// staleness of reads, the server compares clocks since the last [Worker.Barrier].
type Clock int64

// Forever is a clock that no worker reaches: the end of an intent that lasts
// for the rest of the run.
const Forever Clock = math.MaxInt64

// An Epoch counts how often the ownership of a key changed hands. It grows
// with every move, so of two claims to a key the one with the larger epoch is
// the newer.
type Epoch uint32

// A Version counts the changes applied to the main copy of a key. It travels
// with the key.
type Version uint64

// A View numbers one membership of the run: it grows when a node is admitted
// or lost. Messages carry the view of their sender.
type View uint64
