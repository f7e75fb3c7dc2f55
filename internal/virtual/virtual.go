// Package virtual is how a node is made part of a simulation: what rules it ([Options]), and what
// a simulation may do with it and see of it that a program may not ([Node]).
package virtual

import (
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol"
)

// Options make a node part of a simulation: it has no connections. Flush is told that
// frames of the node for a peer wait (also during its start), takes them from Frame and
// hands them to the peer's Handle, in order and one after the other.
type Options struct {
	World   host.World             // time, goroutines and waiting
	Started func(Node)             // is given the node, before anything is sent; nil: nobody wants it
	Flush   func(to godwit.NodeID) // a frame for a peer waits
	// Forgets, if set, is asked before each frame whether the node forgets the
	// lists of keys that its sender refers to. It asks for them then.
	Forgets func() bool
	// Strains, if set, says whether bytes bound the way to a peer, in place of what the
	// link measures.
	Strains func() bool
	// Barriers is how many barriers the workers count as behind them when the node
	// starts, the same at all nodes: bounds count them modulo a power of two.
	Barriers uint64
	// LongStep is from which length of their steps on workers fetch ahead, under a policy that
	// does (placement.AheadPolicy); 0: as of a real node, less: they always do, math.MaxInt64: never.
	LongStep time.Duration
	// Depth is for how many steps ahead they do at first, with the keys that the steps before use; 0: as of a real node.
	Depth int
	// Limits bounds the node's queues; zero: as of a real node.
	Limits Limits
	// Broken switches rules of the protocol off, to see that checks notice.
	Broken protocol.Broken
	// BrokenCut does so with rules of cuts.
	BrokenCut protocol.BrokenCut
	// BrokenBound does so with rules of bounded staleness.
	BrokenBound BrokenBound
}

// Limits are the bounds of a node's queues.
type Limits = host.Limits

// A Node is a simulated node. Its methods are for the simulation's goroutine.
type Node interface {
	// Frame takes the oldest frame for a peer out of its queue, into the memory of buf.
	// It is empty if there is none.
	Frame(to godwit.NodeID, buf []byte) []byte
	// Handle hands a frame of a peer to the node, and returns how many records it had. If
	// the next frame of the peer is there already, what follows from this one may wait for
	// it, as at a real node. An error ends the run.
	Handle(from godwit.NodeID, frame []byte, more bool) (records int, err error)
	// Holding returns what the node has of a key at this moment. The row is the node's own
	// memory.
	Holding(k godwit.Key) protocol.Holding
	// Owner returns who owns a key, as the node, its home, knows.
	Owner(k godwit.Key) godwit.NodeID
	// Resting says what the node has left to do, or forgot; nil if nothing. It is for when no
	// worker calls and nothing is under way at any node.
	Resting() error
}

// BrokenBound switches rules of bounded staleness off, so that tests can show that
// they would notice. The rules S1 to S4 are at type Bound of node/internal/staleness.
// protocol.Broken.FlushAtSend switches off that S1 waits for acknowledgements.
type BrokenBound struct {
	// PushesFirst, S1: the look at unanswered pushes comes before that at the tick. A
	// storm can notice only if it comes between (package preempt).
	PushesFirst bool

	SettleOpen bool // S1: pushes that were not answered count as settled
	MarkFirst  bool // S2: the tick goes before what the holders lack
	SpareIdle  bool // S2: copies that are not used go on being refreshed more rarely
	AnyCopy    bool // S2: replicas are read as if they were main copies
	KeepEra    bool // S4: a barrier ends no era
	AfterAny   bool // pulls that depend on a tick are served at once
}
