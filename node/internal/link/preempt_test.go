//go:build preempt

package link

import (
	"testing"

	"github.com/godwit-ps/godwit/internal/preempt"
)

// A node that owes nothing may be asked for a row, also where what it owed comes just when one is denied: nobody would tell of room for it.
func TestARowThatComesWhileAnotherIsDeniedIsNotMissed(t *testing.T) {
	for at := 1; at <= 3; at++ {
		a := newAsking(1000, 3)
		a.ask(1, 800)
		a.ask(2, 100)
		points := 0
		heard := false
		remove := preempt.Install(func() {
			if points++; points == at {
				heard = a.got(2, 100)
			}
		})
		ok := a.ask(2, 100)
		remove()
		if points < at {
			t.Fatalf("there are %d points, want %d", points, at)
		}
		if !ok && !heard {
			t.Errorf("at point %d the last row of a node comes: another is denied, and nobody hears that there is room", at)
		}
	}
}
