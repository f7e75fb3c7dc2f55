package node

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// What a request changes at this node goes to the replicas elsewhere although
// nothing else happens.
func TestASetAtTheOwnerComesToReplicasByItself(t *testing.T) {
	ctx := background(t)
	c := local(t, 2, Config{Model: model(t, 40, 1), Policy: placement.Adaptive, Workers: 1})
	k := homedAt(t, c.Nodes[0], 1, 1)
	must(t, c.Nodes[1].Worker(0).Intent(k, 0, godwit.Forever))
	actedOn(t, c.Nodes[1], k[0]) // else the key would move
	must(t, c.Nodes[0].Worker(0).Intent(k, 0, godwit.Forever))
	eventually(t, "a replica at node 0", func() bool { return holding(c, k[0]) == "RO" })
	v := make([]float32, 1)
	for i := range 10 {
		must(t, c.Nodes[1].Worker(0).Set(ctx, k, []float32{float32(i)}))
		eventually(t, "node 0 reads what node 1 has set", func() bool {
			return c.Nodes[0].Worker(0).PullIfLocal(k[0], v) && v[0] == float32(i)
		})
	}
}

func TestASampleOfNoSamplerIsFinishedWithoutEffect(t *testing.T) {
	c := local(t, 1, Config{Model: model(t, 4, 1), Workers: 1})
	c.Nodes[0].Worker(0).FinishSample(77)
}
