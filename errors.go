package godwit

import (
	"errors"
	"fmt"
	"strings"
)

// Conditions that a caller can test with errors.Is. Operations return them
// wrapped in an [OpError].
var (
	// ErrKeyRange: a key does not exist in the model. Nothing was done.
	ErrKeyRange = errors.New("key out of range")
	// ErrLength: a buffer's length is not the summed value lengths of the keys.
	// Nothing was done.
	ErrLength = errors.New("wrong buffer length")
	// ErrPeerLost: a node of the run died or cannot be reached. The run has ended at
	// all nodes; all later operations return the same error.
	ErrPeerLost = errors.New("node lost")
	// ErrClosed: the node or worker was closed, by its own process.
	ErrClosed = errors.New("closed")
	// ErrFull: a bounded queue is full and the operation was not accepted.
	ErrFull = errors.New("queue full")
	// ErrMemory: the system gives this node no more memory for rows, or one of its shards has
	// no room for more, and the run has ended at all nodes; at other nodes the error is
	// ErrPeerLost. At a start: the replicas that the policy keeps of all rows do not fit.
	ErrMemory = errors.New("out of memory")
	// ErrBound: the operation needs a table with bounded staleness, or would wait
	// for its own worker. Nothing was done.
	ErrBound = errors.New("no such bound")
	// ErrHandle: a handle that is waited for is not one of this worker.
	ErrHandle = errors.New("no operation of this worker")
	// ErrSample: a sample id is unknown or has fewer samples left than asked for.
	ErrSample = errors.New("no such samples")
)

// An OpError reports an operation of a worker that failed: which one, by whom,
// on which keys, which peer it waited for, and why.
type OpError struct {
	Op     string   // "pull", "push", …
	Worker WorkerID // who called
	Peer   NodeID   // the node that did not answer; NoNode where none is to blame
	First  Key      // of the keys concerned: the first,
	Last   Key      // the last, and
	Keys   int      // how many; 0 where the operation has no keys
	Err    error    // the cause
}

func (e *OpError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s", e.Worker, e.Op)
	switch {
	case e.Keys == 1:
		fmt.Fprintf(&b, " of key %d", e.First)
	case e.Keys > 1:
		fmt.Fprintf(&b, " of %d keys (%d … %d)", e.Keys, e.First, e.Last)
	}
	if e.Peer != NoNode {
		fmt.Fprintf(&b, " at node %d", e.Peer)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	return b.String()
}

func (e *OpError) Unwrap() error { return e.Err }
