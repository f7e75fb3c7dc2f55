package sim

import (
	"context"
	"runtime"
	"testing"

	"github.com/godwit-ps/godwit/internal/virtual"
	"github.com/godwit-ps/godwit/placement"
)

// Nodes that owe each other rows, with room for one in every queue, wait for one
// another in no circle, and keep all promises: a full queue holds up what must
// wait for it (an answer to WaitSync, a word on clocks), and nothing else.
func TestStormsWithRoomForOneRow(t *testing.T) {
	one := virtual.Limits{Frame: 1, Copies: 1, Asked: 1, Rows: 1, Answers: 1, Owed: 64 << 20, Ops: 1, Ahead: 20}
	names := append(placement.Names(), "nonuniform(factor=2)", "open")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, bounded := range []bool{false, true} {
				w := StormConfig{Limits: one, Bounded: bounded}
				if name != "open" {
					p, err := placement.ByName(name)
					if err != nil {
						t.Fatal(err)
					}
					w.Policy = p
				}
				const n = 150
				r := Storms(context.Background(), 1, n, w, runtime.GOMAXPROCS(0))
				if r.Failed != nil {
					t.Fatalf("bounded %v: %v", bounded, r.Failed)
				}
				if r.Seeds != n || r.Messages < 30*n {
					t.Errorf("%+v: the test is vacuous", *r)
				}
			}
		})
	}
}
