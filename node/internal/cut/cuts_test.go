package cut

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// Rows are handed over without pauses only while no worker would use the processors.
func TestAllWorkersMustRestForRowsToBeHandedOverInAHurry(t *testing.T) {
	c, first, second := new(Cuts), new(Party), new(Party)
	for i, p := range []*Party{first, second} {
		c.Join(p, godwit.WorkerID{Local: i}, new(tick.Clock), func() {})
	}
	for _, step := range []struct {
		does func()
		want bool
	}{
		{func() {}, true}, // nothing yet
		{first.Unpark, false},
		{second.Unpark, false},
		{func() { second.Rest(nil) }, false},
		{func() { first.Barrier(nil) }, false}, // it may go on at any moment
		{func() { first.Rest(nil) }, true},
	} {
		if step.does(); c.resting() != step.want {
			t.Fatalf("%v and %v: in a hurry is %v", first.parked, second.parked, c.resting())
		}
	}
}
