package sim

import (
	"context"
	"runtime"
	"testing"
)

// Calls of all kinds end with their contexts while they wait, and what the storm
// judges holds all the same.
func TestStormsCancelCallsThatWait(t *testing.T) {
	for _, bounded := range []bool{false, true} {
		r := Storms(context.Background(), 1, 300, StormConfig{Bounded: bounded}, runtime.GOMAXPROCS(0))
		if r.Failed != nil {
			t.Fatal(r.Failed)
		}
		c := r.gaveUp
		t.Logf("%d calls of %d to which it could happen: %+v", c.Pulls+c.Pushes+c.Sets+c.Syncs+c.Alls+c.Barriers+c.Others, c.Contexts, c)
		if c.Pulls < 300 || c.Pushes < 100 || c.Sets < 20 || c.Syncs < 50 || c.Alls < 20 || c.Barriers < 50 || c.Others < 20 || bounded && c.Unissued == 0 {
			t.Error("the test is vacuous")
		}
	}
}
