package node

import (
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
)

// A simulated node is what a simulation sees of a node (virtual.Node).
type simulated struct{ *Node }

func (n simulated) Frame(to godwit.NodeID, buf []byte) []byte { return n.links.To(to).Take(buf) }

func (n simulated) Handle(from godwit.NodeID, frame []byte, more bool) (records int, err error) {
	in := n.in[from]
	if f := n.cfg.Virtual.Forgets; f != nil && f() {
		in.Forget()
	}
	return in.Handle(frame, more)
}

func (n simulated) Holding(k godwit.Key) protocol.Holding { return n.rows.Holding(k) }
func (n simulated) Owner(k godwit.Key) godwit.NodeID      { return n.rows.Owner(k) }

func (n simulated) Resting() error {
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
	if open := n.receiver.Asks.Open(); open > 0 {
		return fmt.Errorf("%d questions have no answer", open)
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
	if echoes, nodes := n.loop.Echoes.Pending(); echoes+nodes > 0 {
		return fmt.Errorf("%d echoes of rounds have not come, %d nodes wait for one", echoes, nodes)
	}
	return nil
}
