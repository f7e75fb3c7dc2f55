package node

import (
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/placement"
)

// Bytes that go with a copy of a row whose key has copies elsewhere: its header, its
// place in the index and in the set of keys in use, and what is beside it. An owner
// knows each of the other copies; a replica is two rows.
const (
	rowBytes    = 36
	sideBytes   = 68
	holderBytes = 34
)

// checkFits returns an error if a policy wants a replica of every key on every node,
// and these do not fit in the memory of the machine.
func checkFits(m *godwit.Model, p placement.Policy, nodes int, memory uint64) error {
	if nodes == 1 || !p.Everywhere(false) {
		return nil
	}
	others := float64(nodes - 1)
	own := 1 / float64(nodes)
	need, rows := 0.0, 0.0
	for i := range m.Tables() {
		row := rowBytes + 4*float64(m.TableRowLen(i))
		each := own*(row+sideBytes+holderBytes*others) + (1-own)*(2*row+sideBytes)
		need += float64(m.Table(i).Rows) * each
		rows += float64(m.Table(i).Rows)
	}
	if need <= float64(memory) {
		return nil
	}
	return fmt.Errorf("node: %w: the policy %q keeps all rows at every node: %.0f rows of %.0f bytes, with what goes with them, take %s and there are %s of memory; choose another policy, as the default %q, or fewer rows",
		godwit.ErrMemory, p.Name(), rows, math.Round(need/rows), gib(need), gib(float64(memory)), placement.Adaptive.Name())
}

func gib(bytes float64) string { return fmt.Sprintf("%.4g GiB", bytes/(1<<30)) }

// virtualMemory is what each node of a simulation is taken to have.
const virtualMemory = 4 << 30

// memory returns how many bytes a node may take on this machine.
func (c *Config) memory() uint64 {
	if c.Virtual != nil {
		return virtualMemory
	}
	return host.Available()
}
