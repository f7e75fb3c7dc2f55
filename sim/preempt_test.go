//go:build preempt

package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/history"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/virtual"
	"github.com/godwit-ps/godwit/placement"
)

// Storms keep their promises wherever one goroutine comes between the steps of
// another, also between those that are atomic one by one.
func TestStormsKeepTheirPromisesWhereverTheyAreInterrupted(t *testing.T) {
	for _, bounded := range []bool{false, true} {
		var interrupted uint64
		var judged history.JudgedClocks
		for seed := uint64(1); seed <= *seedsFlag; seed++ {
			r, err := Storm(context.Background(), seed, StormConfig{Bounded: bounded})
			if err != nil {
				t.Fatalf("seed %d (%s): %v", seed, r.Config, err)
			}
			interrupted += r.Interrupted
			judged.Add(r.Judged)
		}
		t.Logf("others came between %d times; bounded: %+v", interrupted, judged)
		if *seedsFlag >= 20 && interrupted < 100**seedsFlag {
			t.Error("the test is vacuous")
		}
	}
}

// A row that is read without a lock is verified. Without that, storms see rows that
// are half old and half new.
func TestWithoutVerifyingRowsStormsFail(t *testing.T) {
	preempt.Unverified = true
	defer func() { preempt.Unverified = false }()
	const most = 500
	for seed := uint64(1); seed <= most; seed++ {
		r, err := Storm(context.Background(), seed, StormConfig{})
		if err != nil {
			t.Logf("seed %d (%s): %.300v", seed, r.Config, err)
			return
		}
	}
	t.Errorf("%d storms did not notice", most)
}

// A node looks at its workers' ticks before it looks at their pushes under way (S1).
// The other way round, a worker that pushes and advances in between has its push
// passed over, and others read without it.
func TestWithoutTheTickFirstReadsLackAPush(t *testing.T) {
	const most = 200
	noticed := 0
	for seed := uint64(1); seed <= most; seed++ {
		if err := readBehind(seed, virtual.BrokenBound{}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := readBehind(seed, virtual.BrokenBound{PushesFirst: true}); err != nil {
			noticed++
			t.Logf("seed %d: %v", seed, err)
		}
	}
	if noticed == 0 {
		t.Errorf("%d runs did not notice", most)
	}
}

// readBehind has node 1 push to a key of node 0, to which it is far, and node 2 read
// there what was pushed before each of its clocks.
func readBehind(seed uint64, broken virtual.BrokenBound) error {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 100, Dim: 1, Staleness: godwit.BulkSynchronous})
	if err != nil {
		return err
	}
	sched := newScheduler(seed)
	sched.of = 4
	defer sched.install()()
	far := func(from, to int) time.Duration {
		if from == 1 && to == 0 {
			return 3 * time.Millisecond
		}
		return 0
	}
	c, err := New(Config{Nodes: 3, Workers: 1, Seed: seed, Model: m, Policy: placement.Static, Network: Network{Latency: 5 * time.Microsecond, Far: far},
		Compute: Compute{Step: 10 * time.Microsecond, Spread: 1}, BrokenBound: broken})
	if err != nil {
		return err
	}
	sched.c = c
	key := godwit.Key(0)
	for c.hosts[0].node.Home(key) != 0 {
		key++
	}
	keys := []godwit.Key{key}
	const steps = 100
	_, err = c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		var open []godwit.Handle
		v := make([]float32, 1)
		for i := range steps {
			switch w.ID().Node {
			case 1:
				h, err := w.PushAsync(ctx, keys, []float32{1})
				if err != nil {
					return err
				}
				if open = append(open, h); i%2 == 0 { // often, none is under way
					if err := w.Wait(ctx, open...); err != nil {
						return err
					}
					open = open[:0]
				}
			case 2:
				if err := w.Pull(ctx, keys, v); err != nil {
					return err
				}
				if int(v[0]) < i {
					return fmt.Errorf("a read at clock %d contains %v pushes", i, v[0])
				}
			}
			w.Advance()
		}
		w.Finish()
		return w.Wait(ctx, open...)
	})
	if e := c.Close(); err == nil {
		err = e
	}
	return err
}
