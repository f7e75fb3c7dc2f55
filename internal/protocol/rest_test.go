package protocol

import (
	"testing"

	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

// What rounding took off a replica's update is in the row when the key moves there,
// and is kept beside it no longer.
func TestTheRestOfAnUpdateGoesWithTheReplicaThatBecomesTheMainCopy(t *testing.T) {
	c := newCluster(2, roundingModel(t, optim.AdaGrad{LR: 0.1}, filter.BF16{}), placement.Adaptive, false, Broken{})
	home, away := c.nodes[c.homes.Home(0)], c.nodes[1-c.homes.Home(0)]
	home.Want(home, 0)
	away.Want(away, 0)
	calm(t, c)
	away.Push(0, padded(1, 0.3, 1.0/7))
	calm(t, c)
	if d := away.replicaAt(0); d == nil || !d.rest.present() {
		t.Fatalf("the key is %v, side %+v: the test is vacuous", away.holding(0), d)
	}
	home.Unwant(home, 0)
	calm(t, c)
	if away.holding(0) != owner {
		t.Fatalf("the key is %v, want that it has moved", away.holding(0))
	}
	if err := c.check(); err != nil {
		t.Error(err)
	}
}
