package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

// A worker that announces, and waits for a push only where its accesses do not take effect in their order, comes to
// wait for no message at all, although each step uses many keys of the step before.
func TestStepsThatWaitedForOwnKeysDoNotAnyMore(t *testing.T) {
	const nodes, steps, keys, rows, step = 4, 200, 100, 30_000, 2 * time.Millisecond
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: 2, Rule: optim.AdaGrad{LR: 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	c := cluster(t, Config{Nodes: nodes, Workers: 1, Seed: 1, Model: m, Policy: placement.Adaptive,
		Network: Network{Latency: 500 * time.Microsecond}, Compute: Compute{Step: step, Spread: 0.2}})
	var first, half time.Duration // when the last worker began the second eighth, and the second half
	var inOrder int
	r := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		rng := rand.New(rand.NewPCG(7, uint64(w.ID().Node)))
		batches := make([][]godwit.Key, steps)
		for i := range batches {
			for range keys { // skewed: an eighth of the keys has half of the accesses
				x := rng.Float64()
				batches[i] = append(batches[i], godwit.Key(x*x*x*rows))
			}
		}
		v, a := make([]float32, 2*keys), w.(godwit.Awaiter)
		var later godwit.Handle
		told, ordered := 0, false
		for i, b := range batches {
			switch i {
			case steps / 16:
				first = max(first, c.Now())
			case steps / 2:
				half = max(half, c.Now())
			}
			for ; told < steps && told <= i+8; told++ {
				if err := w.Intent(batches[told], godwit.Clock(told), godwit.Clock(told+1)); err != nil {
					return err
				}
			}
			if later != 0 && !(ordered && a.InOrder()) {
				if err := w.Wait(ctx, later); err != nil {
					return err
				}
			}
			if came, err := a.AwaitAhead(ctx); !came || err != nil {
				t.Errorf("step %d: what was fetched ahead came: %v, %v", i, came, err)
				return err
			}
			h, err := w.PullAsync(ctx, b, v)
			if err != nil {
				return err
			}
			if err := w.Wait(ctx, h); err != nil {
				return err
			}
			if ordered = a.InOrder(); ordered {
				inOrder++
			}
			if later, err = w.PushAsync(ctx, b, v); err != nil {
				return err
			}
			w.Advance()
		}
		return w.Wait(ctx, later)
	})
	before, after := first/(steps/16), (r.Elapsed-half)/(steps/2)
	t.Logf("a step took %v at first, and %v in the second half; %d of %d were in order", before, after, inOrder, nodes*steps)
	if before < step*13/10 {
		t.Errorf("steps of %v took %v at first: the test is vacuous", step, before)
	}
	if after > step*11/10 {
		t.Errorf("steps of %v take %v with what they wait for", step, after)
	}
	if inOrder < nodes*steps*3/4 {
		t.Errorf("only in %d of %d steps accesses took effect in their order", inOrder, nodes*steps)
	}
}

// Who awaits what was fetched ahead in slices loses nothing by it, and pulls it without a message. A worker's accesses are in
// order from the first on if its node is alone, and else not.
func TestWhatIsFetchedAheadIsAwaitedInSlices(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		c := fetching(t, nodes, 1)
		run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
			a := w.(godwit.Awaiter)
			if in := a.InOrder(); in != (nodes == 1) {
				t.Errorf("accesses of a worker of %d nodes are in order: %v", nodes, in)
			}
			if w.ID().Node != 0 || nodes == 1 {
				return nil
			}
			ks, v := []godwit.Key{keyAt(c, 1)}, make([]float32, 2)
			over, end := context.WithCancel(ctx)
			end()
			for i := range 10 {
				if err := w.Intent(ks, godwit.Clock(i+1), godwit.Clock(i+2)); err != nil {
					return err
				}
				came, err := a.AwaitAhead(over)
				if err != nil || i > 3 && came { // each step uses the key, so that it is asked for when the step begins
					t.Errorf("step %d: what was asked for just now came at once: %v, %v", i, came, err)
				}
				if came, err := a.AwaitAhead(ctx); !came || err != nil {
					t.Errorf("step %d: what was asked for came: %v, %v", i, came, err)
				}
				began := c.Now()
				h, err := w.PullAsync(ctx, ks, v)
				if err != nil {
					return err
				}
				if err := w.Wait(ctx, h); err != nil {
					return err
				}
				if took := c.Now() - began; i > 3 && took > 0 {
					t.Errorf("step %d: a pull of what came took %v", i, took)
				}
				if err := w.Push(ctx, ks, []float32{1, 1}); err != nil {
					return err
				}
				if v[0] != float32(i) {
					t.Errorf("step %d reads %v", i, v)
				}
				w.Advance()
			}
			return nil
		})
	}
}

// A worker that waits for its pushes, and for no value, fetches as before.
func TestWaitsForPushesChangeNothingOfWhatIsFetched(t *testing.T) {
	const steps = 60
	c := cluster(t, Config{Nodes: 2, Workers: 1, Seed: 1, Model: model(t, 4000, 2), Policy: placement.Adaptive,
		Network: Network{Latency: 2 * time.Millisecond}, Compute: Compute{Step: 5 * time.Millisecond}})
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		if w.ID().Node != 0 {
			return nil
		}
		var ks []godwit.Key
		for range steps + 2 {
			ks = append(ks, keyAt(c, 1, ks...))
		}
		v, waited := make([]float32, 2), time.Duration(0)
		for i := range steps {
			if err := w.Intent(ks[i+1:i+2], godwit.Clock(i+1), godwit.Clock(i+2)); err != nil {
				return err
			}
			if err := w.Pull(ctx, ks[i:i+1], v); err != nil {
				return err
			}
			w.Advance() // computes
			began := c.Now()
			if err := w.Push(ctx, ks[i:i+1], v); err != nil {
				return err
			}
			waited += c.Now() - began
			if w.(godwit.Awaiter).InOrder() {
				return fmt.Errorf("step %d: accesses are in order", i)
			}
		}
		if waited < steps*4*time.Millisecond*9/10 {
			t.Errorf("pushes waited %v in %d steps: the test is vacuous", waited, steps)
		}
		return nil
	})
	if s := c.Stats(0); s.Fetched < steps/2 {
		t.Errorf("%d of %d keys were fetched ahead: the test is vacuous", s.Fetched, steps)
	}
}
