package node

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/placement"
)

// filteredPair returns two nodes of two workers whose pushes are rounded, and keys that are homed at the second one.
func filteredPair(t *testing.T, keys int) (c *Cluster, ks []godwit.Key) {
	m := modelOf(t, godwit.Table{Name: "t", Rows: 20_000, Dim: 1, Filters: []godwit.Filter{filter.BF16{}}})
	c = local(t, 2, Config{Model: m, Workers: 2, Policy: placement.Static})
	return c, homedAt(t, c.Nodes[0], 1, keys)
}

func all(x float32, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = x
	}
	return v
}

// A set overwrites what filters had left of earlier pushes of its node, also while another worker, who pushed it, has crossed into a cut.
func TestASetOverwritesWhatIsSetAsideForACut(t *testing.T) {
	ctx := background(t)
	c, k := filteredPair(t, 1)
	a, b := c.Nodes[0].Worker(0), c.Nodes[0].Worker(1)
	v := make([]float32, 1)
	must(t, a.Pull(ctx, k, v)) // so that a is in a step
	must(t, b.Push(ctx, k, []float32{1.001}))
	var crossed [2]atomic.Bool
	for i, w := range []godwit.Worker{a, b} {
		w.(godwit.Cutter).OnCut(func(uint64) { crossed[i].Store(true) })
	}
	cut := make(chan error, len(c.Nodes))
	for _, n := range c.Nodes {
		go func() {
			_, err := n.Cut(ctx, 1, WholeCut, func(int, []uint64, []float32) error { return nil })
			cut <- err
		}()
	}
	goOn := func(i int, w godwit.Worker) {
		eventually(t, "the worker crosses", func() bool { w.Advance(); return crossed[i].Load() })
	}
	goOn(1, b)
	if crossed[0].Load() {
		t.Fatal("a has crossed in the middle of its step: the test is vacuous")
	}
	must(t, a.Set(ctx, k, []float32{10}))
	goOn(0, a)
	for range c.Nodes {
		must(t, <-cut)
	}
	must(t, a.WaitSync(ctx))
	must(t, b.WaitSync(ctx))
	must(t, a.Pull(ctx, k, v))
	if v[0] != 10 {
		t.Errorf("the key was set to 10 after all pushes, and is %v", v[0])
	}
}

// A set overwrites what filters had left of a push that is over, also while another call pushes that.
func TestASetOverwritesWhatAWaitSyncPushes(t *testing.T) {
	ctx := background(t)
	c, ks := filteredPair(t, 4000)
	a, b := c.Nodes[0].Worker(0), c.Nodes[0].Worker(1)
	v := make([]float32, 1)
	for i := range 60 * *scale {
		must(t, b.Push(ctx, ks, all(1.001, len(ks))))
		synced := make(chan error)
		go func() { synced <- b.WaitSync(ctx) }()
		time.Sleep(time.Duration(i%60) * 15 * time.Microsecond)
		k := ks[len(ks)-1-i%1000:][:1]
		must(t, a.Set(ctx, k, []float32{10}))
		must(t, <-synced)
		must(t, a.WaitSync(ctx))
		must(t, a.Pull(ctx, k, v))
		if v[0] != 10 {
			t.Fatalf("round %d: the key was set to 10 after all pushes of its node were over, and is %v", i, v[0])
		}
	}
}
