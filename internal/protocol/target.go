package protocol

import (
	"fmt"

	"github.com/godwit-ps/godwit"
)

// mayMove reports whether a key can move to the node that the policy names: another node
// of the run. It calls Misplaced if the policy names a node that the run does not have.
func (c *Config) mayMove(k godwit.Key, to godwit.NodeID) bool {
	if to == c.Self {
		return false
	}
	if c.Homes.Member(to) {
		return true
	}
	if c.Misplaced != nil {
		i, row := c.Model.Locate(k)
		c.Misplaced(fmt.Errorf("protocol: policy %q relocates key %d (table %q, row %d) to node %d, which is no node of this run: it may choose the asker or one of the others of a situation",
			c.Policy.Name(), k, c.Model.Table(i).Name, row, to))
	}
	return false
}
