package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// Of keys that all nodes use, each has about as many main copies, though one node begins a moment before the others. A key that one node
// alone uses and changes moves to it.
func TestMainCopiesOfWhatAllUseAreEven(t *testing.T) {
	const nodes, shared, own, steps, ahead = 4, 400, 25, 400, 8
	c := cluster(t, Config{Nodes: nodes, Workers: 1, Seed: 1, Model: model(t, shared+nodes*own, 2), Policy: placement.Adaptive,
		Network: Network{Latency: 50 * time.Microsecond}, Compute: Compute{Step: 20 * time.Microsecond, Spread: 0.2}})
	batch := func(n, step int) (ks []godwit.Key) {
		for i := range 10 {
			ks = append(ks, godwit.Key((step*10+i)%shared))
		}
		return append(ks, godwit.Key(shared+n*own+step%own))
	}
	var mains [nodes]int
	var alone int // keys that are where they are used
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		n := int(w.ID().Node)
		if n > 0 {
			world{c, c.hosts[n]}.Sleep(100*time.Microsecond, nil, nil)
		}
		told := 0
		for i := range steps {
			for ; told < steps && told <= i+ahead; told++ {
				if err := w.Intent(batch(n, told), godwit.Clock(told), godwit.Clock(told+1)); err != nil {
					return err
				}
			}
			ks := batch(n, i)
			v := make([]float32, 2*len(ks))
			if err := w.Pull(ctx, ks, v); err != nil {
				return err
			}
			if err := w.Push(ctx, ks, slices.Repeat([]float32{1}, len(v))); err != nil {
				return err
			}
			w.Advance()
		}
		for k := range godwit.Key(shared + nodes*own) {
			if c.hosts[n].virtual.Holding(k).State != "owner" {
				continue
			}
			if k < shared {
				mains[n]++
			} else if int(k-shared)/own == n {
				alone++
			}
		}
		return nil
	})
	t.Logf("the nodes have %v of %d main copies of shared keys; %d of %d other keys are where they are used", mains, shared, alone, nodes*own)
	if slices.Max(mains[:]) > 2*shared/nodes {
		t.Errorf("the nodes have %v of %d main copies, want a fair share each, and not more than two of them", mains, shared)
	}
	if alone < nodes*own*9/10 {
		t.Errorf("%d of %d keys that one node uses alone are there", alone, nodes*own)
	}
}
