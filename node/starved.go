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

// outOfRows ends the run here because one shard has nearly as many rows as fit. It is called under
// the shard's lock, before there are too many.
func (n *Node) outOfRows(rows, floats int) {
	n.outOfRoom(fmt.Sprintf("%d rows of %d floats are at this node whose keys", rows, floats),
		fmt.Sprintf("use more nodes, spread the keys, or have tables of fewer different row lengths (there are %d)", n.proto.RowLengths()))
}

// outOfSides is outOfRows for keys that are copied.
func (n *Node) outOfSides(keys int) {
	n.outOfRoom(fmt.Sprintf("%d keys that are copied here, or from here to other nodes,", keys), "use more nodes, or spread the keys")
}

func (n *Node) outOfRoom(what, remedy string) {
	if n.Err() != nil {
		return
	}
	n.rows.Starve()
	n.run.Fail(fmt.Errorf("node: %w: %s have the same remainder modulo %d, and there is room for hardly more; %s", godwit.ErrMemory, what, n.rows.Shards(), remedy))
}

func (n *Node) noMemory(used int, cause error) error {
	return fmt.Errorf("node: %w: %w: %s of rows are at this node, and all rows of the model take %s, copies not counted; use more nodes or memory, or a smaller model",
		godwit.ErrMemory, cause, gib(float64(used)), gib(bytesOf(n.cfg.Model)))
}
