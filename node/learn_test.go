package node

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// Programs that only pull and push: of a relaxed table, what is used again and again is copied;
// of another one, keys move to the node that uses them alone, and no replica is made. No push is
// lost.
func TestNodesLearnWhatProgramsDoNotAnnounce(t *testing.T) {
	const nodes, rows, steps = 3, 60, 400
	for _, relaxed := range []bool{false, true} {
		cfg := Config{Workers: 2, Policy: placement.Adaptive, Model: modelOf(t, godwit.Table{Name: "t", Rows: rows, Dim: 2, Relaxed: relaxed})}
		c := local(t, nodes, cfg)
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			key, v := make([]godwit.Key, 1), make([]float32, 2)
			for range steps {
				key[0] = godwit.Key(rng.IntN(rows/nodes)*nodes) + godwit.Key(w.ID().Node) // used by this node
				if rng.IntN(10) == 0 {
					key[0] = godwit.Key(rng.IntN(rows)) // by others
				}
				if err := w.Pull(ctx, key, v); err != nil {
					return err
				}
				if err := w.Push(ctx, key, []float32{1, 2}); err != nil {
					return err
				}
			}
			return everywhere(ctx, w)
		})
		total := float32(0)
		v := make([]float32, 2)
		for k := range godwit.Key(rows) {
			if err := c.Nodes[0].Worker(0).Pull(context.Background(), []godwit.Key{k}, v); err != nil {
				t.Fatal(err)
			}
			if v[1] != 2*v[0] {
				t.Errorf("key %d is %v", k, v)
			}
			total += v[0]
		}
		if want := float32(nodes * cfg.Workers * steps); total != want {
			t.Errorf("relaxed %v: %v pushes arrived, want %v", relaxed, total, want)
		}
		s := sum(c)
		t.Logf("relaxed %v: learned %d, moves %d, copies %d, drops %d, %.1f %% without a message", relaxed, s.Learned, s.Moves, s.Copies, s.Drops, 100*s.NoMessage())
		switch {
		case s.Learned == 0 || s.NoMessage() < 0.5:
			t.Errorf("relaxed %v: %d keys were learned, %.2f of accesses took no message", relaxed, s.Learned, s.NoMessage())
		case relaxed && (s.Copies == 0 || s.Moves > 0):
			t.Errorf("%d keys of a relaxed table were copied and %d moved", s.Copies, s.Moves)
		case !relaxed && (s.Copies > 0 || s.Moves < rows/6):
			t.Errorf("%d keys were copied and %d moved", s.Copies, s.Moves)
		}
	}
}
