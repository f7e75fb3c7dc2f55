package node

import (
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
)

// Holding returns what the node has of a key at this moment. The row is the
// node's own memory, so this is for virtual nodes, where nothing else runs.
func (n *Node) Holding(k godwit.Key) protocol.Holding {
	return n.rows.Holding(k)
}

// Owner returns who owns a key, as this node, its home, knows.
func (n *Node) Owner(k godwit.Key) godwit.NodeID {
	return n.rows.Owner(k)
}

// Home returns the home of a key.
func (n *Node) Home(k godwit.Key) godwit.NodeID { return n.proto.Homes.Home(k) }

// Resting says what the node has left to do, or forgot; nil if nothing. It is
// for when no worker calls and nothing is under way at any node.
func (n *Node) Resting() error {
	if err := n.rows.Resting(); err != nil {
		return err
	}
	for id, p := range n.links.All {
		if queued := p.Counts().Queued; queued > 0 {
			return fmt.Errorf("%d bytes for node %d were never sent", queued, id)
		}
	}
	for id, in := range n.in {
		if in != nil && in.Waiting() > 0 {
			return fmt.Errorf("%d frames of node %d wait for a list of keys", in.Waiting(), id)
		}
	}
	if err := n.workers.Resting(); err != nil {
		return err
	}
	if err := n.bound.Resting(); err != nil {
		return err
	}
	if calls, nodes := n.loop.Sync.Open(); calls+nodes > 0 {
		return fmt.Errorf("%d WaitSync calls go on, %d nodes wait to hear that they have everything", calls, nodes)
	}
	return nil
}

// Intents returns how many keys the intents of the node's workers hold that
// have not ended, counted once an intent.
func (n *Node) Intents() (keys int64) { return n.planner.Held() }
