package node

import (
	"fmt"

	"github.com/godwit-ps/godwit"
)

// outOfMemory ends the run here because the system has no more memory for rows.
// What is under way goes on in the arena's reserve until everybody has noticed. It
// is called under a shard's lock.
func (n *Node) outOfMemory(used int, cause error) {
	err := n.noMemory(used, cause)
	n.rows.Starve()
	n.run.Fail(err)
}

func (n *Node) noMemory(used int, cause error) error {
	return fmt.Errorf("node: %w: %w: %s of rows are at this node, and all rows of the model take %s, copies not counted; use more nodes or memory, or a smaller model",
		godwit.ErrMemory, cause, gib(float64(used)), gib(bytesOf(n.cfg.Model)))
}
