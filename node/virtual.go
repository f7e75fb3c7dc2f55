package node

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/node/internal/staleness"
)

// A Virtual makes a node part of a simulation: it has no connections. Flush is
// told that frames of node n for a peer wait (also during Start), takes them
// from Frame and hands them to the peer's Handle, in order and one after the
// other.
type Virtual struct {
	World host.World                      // time, goroutines and waiting
	Flush func(n *Node, to godwit.NodeID) // a frame of n for a peer waits
	// Forgets, if set, is asked before each frame whether the node forgets the
	// lists of keys that its sender refers to. It asks for them then.
	Forgets func() bool
	// Barriers is how many barriers the workers count as behind them when the node
	// starts, the same at all nodes: bounds count them modulo a power of two.
	Barriers uint64
	// Limits bounds the node's queues; zero: as of a real node.
	Limits host.Limits
	// Broken switches rules of the protocol off, to see that checks notice.
	Broken protocol.Broken
	// BrokenBound does so with rules of bounded staleness.
	BrokenBound Broken
}

// Frame takes the oldest frame for a peer out of the queue of a virtual node,
// into the memory of buf. It is empty if there is none.
func (n *Node) Frame(to godwit.NodeID, buf []byte) []byte {
	return n.links.To(to).Take(buf)
}

// Handle hands a frame of a peer to a virtual node, and returns how many
// records it had. If the next frame of the peer is there already, what follows
// from this one may wait for it, as at a real node. An error ends the run.
func (n *Node) Handle(from godwit.NodeID, frame []byte, more bool) (records int, err error) {
	in := n.in[from]
	if f := n.cfg.Virtual.Forgets; f != nil && f() {
		in.Forget()
	}
	return in.Handle(frame, more)
}

// Limits are the bounds of a node's queues.
type Limits = host.Limits

// Broken switches rules of bounded staleness off.
type Broken = staleness.Broken
