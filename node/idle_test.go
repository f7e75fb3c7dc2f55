package node

import (
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
)

// Replicas that nobody writes cost no message and no round, however many.
func TestIdleReplicasCostNothing(t *testing.T) {
	const keys = 10_000
	ctx := background(t)
	c := local(t, 2, Config{Model: model(t, keys, 16), Workers: 1})
	all := make([]godwit.Key, keys)
	for i := range all {
		all[i] = godwit.Key(i)
	}
	for _, n := range c.Nodes {
		must(t, n.Worker(0).Intent(homedAt(t, n, n.self, keys/4), 0, godwit.Forever))
		must(t, n.Worker(0).WaitSync(ctx))
	}
	for _, n := range c.Nodes {
		must(t, n.Worker(0).Intent(all, 0, godwit.Forever))
		must(t, n.Worker(0).WaitSync(ctx))
	}
	local := func() int {
		held := 0
		for _, n := range c.Nodes {
			here := n.rows.Totals()
			held += here.Owned + here.Replicas
		}
		return held
	}
	eventually(t, "every key is at both nodes", func() bool { return local() == 2*keys })
	var quiet Stats
	eventually(t, "for a second no frame is sent and no round run", func() bool {
		quiet = sum(c)
		time.Sleep(time.Second)
		after := sum(c)
		return after.Frames == quiet.Frames && after.Rounds == quiet.Rounds
	})
	if quiet.Replicas < keys/2 {
		t.Errorf("only %d replicas: the test is vacuous", quiet.Replicas)
	}
}
