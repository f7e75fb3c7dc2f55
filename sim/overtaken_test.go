package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/placement"
)

// A worker that fetches several steps ahead sends what it asks for and pushes by keys' homes. By location hints a value that it
// asks for could overtake a push before: here the key was at node 2, which is far away, and moved to node 3, as node 0
// learns between the two. So what the worker reads in its next step would lack its own push.
func TestAValueAskedForAheadDoesNotOvertakeAnEarlierPush(t *testing.T) {
	const far = 20 * time.Millisecond
	c := cluster(t, Config{Nodes: 5, Workers: 1, Seed: 1, Model: model(t, 4000, 2), Policy: placement.Adaptive, LongStep: -time.Hour, Depth: 2, Watch: true,
		Network: Network{Latency: 50 * time.Microsecond, Far: func(from, to int) time.Duration {
			switch {
			case from == 0 && to == 2:
				return far
			case from == 0 && to == 4:
				return far / 2
			}
			return 0
		}}})
	k, distant := keyAt(c, 1), keyAt(c, 4)
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		ks, v, first := []godwit.Key{k}, make([]float32, 2), make([]float32, 2)
		for _, turn := range []struct {
			node godwit.NodeID
			do   func() error
		}{
			{2, func() error { return w.Localize(ctx, ks) }},
			{0, func() error { return w.Pull(ctx, ks, first) }}, // the hint: node 2
			{3, func() error { return w.Localize(ctx, ks) }},    // it is stale now
		} {
			if w.ID().Node == turn.node {
				if err := turn.do(); err != nil {
					return err
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
		}
		if w.ID().Node != 0 {
			return nil
		}
		pull, err := w.PullAsync(ctx, ks, make([]float32, 2))
		if err != nil {
			return err
		}
		if err := w.Pull(ctx, []godwit.Key{distant}, v); err != nil { // half the way to node 2
			return err
		}
		push, err := w.PushAsync(ctx, ks, []float32{1, 2})
		if err != nil {
			return err
		}
		if err := w.Wait(ctx, pull); err != nil { // the hint is fresh
			return err
		}
		fetched := c.Node(0).Stats().Fetched
		if err := w.Intent(ks, w.Clock()+1, w.Clock()+2); err != nil {
			return err
		}
		if now := c.Node(0).Stats().Fetched; now != fetched+1 {
			return fmt.Errorf("%d keys were fetched ahead, want one", now-fetched)
		}
		w.Advance()
		if err := w.Pull(ctx, ks, v); err != nil {
			return err
		}
		if v[0] != first[0]+1 || v[1] != first[1]+2 {
			return fmt.Errorf("read %v after a push of [1 2] to %v", v, first)
		}
		return w.Wait(ctx, push)
	})
	if o, _, _ := c.holdings(k); len(o) != 1 || o[0] != 3 {
		t.Errorf("the key is at nodes %d, want node 3: the test is vacuous", o)
	}
}

// A worker that announces a key again for the same step may have fetched it twice for it: first its row, as a step before uses the
// key, too, and, when that step is over, its value, which is newer. What the worker has read is the value. When it pushes, the value
// cannot be used any more; the row would take it back in time.
func TestARowIsNotUsedAfterAValueThatWasAskedForLater(t *testing.T) {
	const steps = 5
	c := cluster(t, Config{Nodes: 2, Workers: 1, Seed: 1, Model: model(t, 4000, 2), Policy: placement.Adaptive, LongStep: -time.Hour, Depth: 4, Watch: true,
		Network: Network{Latency: 50 * time.Microsecond}, Compute: Compute{Step: time.Millisecond}})
	ks, end := []godwit.Key{keyAt(c, 1)}, []float32(nil)
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		v := make([]float32, 2)
		if w.ID().Node == 1 { // changes the key in each step
			for range steps {
				if err := w.Push(ctx, ks, []float32{1, 1}); err != nil {
					return err
				}
				w.Advance()
			}
			return nil
		}
		announce := func(at ...godwit.Clock) error {
			fetched := c.Node(0).Stats().Fetched
			for _, at := range at {
				if err := w.Intent(ks, at, at+1); err != nil {
					return err
				}
			}
			if now := c.Node(0).Stats().Fetched; now != fetched+uint64(len(at)) {
				return fmt.Errorf("%d keys were fetched ahead, want %d: the test is vacuous", now-fetched, len(at))
			}
			return nil
		}
		if err := announce(1, 3); err != nil {
			return err
		}
		w.Advance()
		w.Advance()
		if err := announce(3); err != nil {
			return err
		}
		w.Advance()
		if err := w.Pull(ctx, ks, v); err != nil {
			return err
		}
		end = append(end, v[0])
		if err := w.Push(ctx, ks, []float32{100, 100}); err != nil {
			return err
		}
		if err := w.Pull(ctx, ks, v); err != nil {
			return err
		}
		end = append(end, v[0]-100)
		return nil
	})
	if end[0] < 2 {
		t.Errorf("the worker read %v changes of the other node first: the test is vacuous", end[0])
	}
	if end[1] < end[0] {
		t.Errorf("the worker read %v changes of the other node, and then %v", end[0], end[1])
	}
}

// What a filter held back of a worker's pushes, the WaitSync of another worker of its node may send. Behind its own WaitSync, the worker
// reads it, also where it had fetched the value ahead before.
func TestAValueFetchedAheadIsNotUsedBehindAWaitSyncIfAFilterHeldBack(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 4000, Dim: 2, Filters: []godwit.Filter{filter.Significant{Threshold: 10}}})
	if err != nil {
		t.Fatal(err)
	}
	c := cluster(t, Config{Nodes: 2, Workers: 2, Seed: 1, Model: m, Policy: placement.Adaptive, LongStep: -time.Hour, Network: Network{Latency: 50 * time.Microsecond}})
	k := keyAt(c, 1)
	other := []godwit.Key{keyAt(c, 1, k)}
	fetched, flushed := make(chan struct{}), make(chan struct{})
	until := func(ctx context.Context, w godwit.Worker, done <-chan struct{}) error {
		for {
			select {
			case <-done:
				return nil
			default:
				if err := w.Pull(ctx, other, make([]float32, 2)); err != nil { // time passes
					return err
				}
			}
		}
	}
	run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
		if w.ID().Node != 0 {
			return nil
		}
		if w.ID().Local == 1 {
			if err := until(ctx, w, fetched); err != nil {
				return err
			}
			err := w.WaitSync(ctx)
			close(flushed)
			return err
		}
		ks, v := []godwit.Key{k}, make([]float32, 2)
		if err := w.Push(ctx, ks, []float32{1, 2}); err != nil {
			return err
		}
		if err := w.Intent(ks, 1, 2); err != nil {
			return err
		}
		close(fetched)
		if err := until(ctx, w, flushed); err != nil {
			return err
		}
		if s := c.Node(0).Stats(); s.Fetched == 0 || s.HeldBack == 0 {
			t.Errorf("%d keys were fetched ahead, %d pushes held back: the test is vacuous", s.Fetched, s.HeldBack)
		}
		if err := w.WaitSync(ctx); err != nil {
			return err
		}
		w.Advance()
		if err := w.Pull(ctx, ks, v); err != nil {
			return err
		}
		if v[0] != 1 || v[1] != 2 {
			t.Errorf("the worker reads %v behind its WaitSync, its push was [1 2]", v)
		}
		return nil
	})
}
