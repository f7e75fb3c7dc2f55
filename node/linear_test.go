package node

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/linear"
	"github.com/godwit-ps/godwit/placement"
)

// searched runs workers that wait for each operation on a few keys that they
// move and announce, on real goroutines, and returns what happened.
func searched(t *testing.T, policy placement.Policy) (*linear.History, Stats) {
	const nodes, workers, keys, ops = 3, 2, 3, 500
	h := &linear.History{}
	c := local(t, nodes, Config{Workers: workers, Policy: policy, Model: modelOf(t, godwit.Table{Name: "t", Rows: keys, Dim: nodes * workers})})
	each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
		node := int(w.ID().Node)
		id := node*workers + w.ID().Local
		for range ops * *scale {
			k := godwit.Key(rng.IntN(keys))
			v := make([]float32, nodes*workers)
			var err error
			switch x := rng.IntN(10); {
			case x < 4:
				o := h.Begin(id, node, linear.Read, k, nil)
				err = w.Pull(ctx, []godwit.Key{k}, v)
				h.End(o, v)
			case x < 8:
				v[id] = 1
				o := h.Begin(id, node, linear.Push, k, v)
				err = w.Push(ctx, []godwit.Key{k}, v)
				h.End(o, nil)
			case x == 8:
				err = w.Localize(ctx, []godwit.Key{k})
			default:
				err = w.Intent([]godwit.Key{k}, w.Clock()+1, w.Clock()+15)
			}
			if err != nil {
				return err
			}
			w.Advance()
			if rng.IntN(3) == 0 {
				time.Sleep(20 * time.Microsecond) // so that others get their turn in between
			}
		}
		return nil
	})
	s := sum(c)
	t.Logf("%d operations, %d moves, %d copies, %d accesses to replicas", h.Len(), s.Moves, s.Copies, s.Replica)
	return h, s
}

func TestConformanceC1KeysWithOneCopyAreAtomicOnRealNodes(t *testing.T) {
	h, s := searched(t, placement.RelocateAll)
	if err := h.Atomic(godwit.Add{}); err != nil {
		t.Errorf("-seed %d: %v", *seed, err)
	}
	if s.Moves < 20 || s.Copies > 0 || h.Len() < 2000 {
		t.Errorf("%+v: the test is vacuous", s)
	}
}

func TestConformanceC3C4RealNodesSeeReplicatedKeysInOrder(t *testing.T) {
	h, s := searched(t, placement.Adaptive)
	if err := h.InOrder(); err != nil {
		t.Errorf("-seed %d: %v", *seed, err)
	}
	if s.Copies < 5 || s.Replica < 50 || h.Len() < 2000 {
		t.Errorf("%+v: the test is vacuous", s)
	}
}
