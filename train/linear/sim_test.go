//go:build !race

package linear

// The simulator is one goroutine, which the race detector would make slow for
// nothing.

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/internal/simtest"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
	"github.com/godwit-ps/godwit/train"
)

// simulated trains a task on simulated nodes, over a network with jitter and
// spikes, and returns the report and the quality of node 0.
func simulated[D any](t *testing.T, task anyTask[D], m *model, nodes int, policy string, o train.Options) (*train.Report, Quality) {
	t.Helper()
	c := simtest.Storm(t, nodes, policy, 3, 200*time.Microsecond, task.Tables())
	var report *train.Report
	var quality Quality
	if _, err := c.RunNodes(t.Context(), func(ctx context.Context, env train.Env) error {
		r, err := train.Run(ctx, env, task, o)
		if err != nil {
			return err
		}
		q, err := m.EvaluateOn(ctx, &env, "test", m.data.Test)
		if env.Node == 0 {
			report, quality = r, q
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return report, quality
}

func TestBlocksEndTheSameUnderEveryPolicy(t *testing.T) {
	data := generated(t, func(s *libsvm.Spec) { s.Examples, s.Features = 1500, 200 })
	c := DefaultBlockConfig()
	c.Blocks, c.Delay = 6, 1
	var want float64
	for i, name := range placement.Names() {
		task := newBlocks(t, c, data)
		r, q := simulated[Turn](t, task, task.model, 1+i%4, name, train.Options{Epochs: 5})
		last := r.Losses[4].Sum
		if i == 0 {
			want = last
		}
		if math.Abs(last/want-1) > 1e-5 {
			t.Errorf("%s on %d nodes: the objective ends at %v, others at %v (%v)", name, 1+i%4, last, want, q)
		}
	}
}

// What the network takes, and how much longer some turns take than others, goes
// by beneath other turns.
func TestALongDelayLeavesWorkersNothingToWaitFor(t *testing.T) {
	data := generated(t, func(s *libsvm.Spec) { s.Examples, s.Features = 2000, 1000 })
	waited := func(delay int) float64 {
		c := DefaultBlockConfig()
		c.Blocks, c.Delay = 256, delay
		task := newBlocks(t, c, data)
		network, err := sim.NetworkNamed("10g")
		if err != nil {
			t.Fatal(err)
		}
		m, err := godwit.NewModel(task.Tables()...)
		if err != nil {
			t.Fatal(err)
		}
		const nodes = 4
		cluster, err := sim.New(sim.Config{
			Nodes: nodes, Workers: 1, Seed: 1, Model: m, Policy: placement.Adaptive, Network: network,
			Compute: sim.Compute{Step: 200 * time.Microsecond, Spread: 0.3, Key: 60 * time.Nanosecond, Frame: 3 * time.Microsecond, Record: 200 * time.Nanosecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		r, err := cluster.RunNodes(t.Context(), func(ctx context.Context, env train.Env) error {
			_, err := train.Run(ctx, env, task, train.Options{Epochs: 4})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.Sum().Waited.Seconds() / r.Elapsed.Seconds() / nodes
	}
	none, long := waited(0), waited(8)
	t.Logf("workers wait for %.1f %% of the time with no delay and for %.1f %% with a delay of 8", 100*none, 100*long)
	if none < 0.3 || long > 0.08 {
		t.Errorf("workers wait for %.3f of the time with no delay and for %.3f with a delay of 8, want 0.3 at least and 0.08 at the most", none, long)
	}
}

// Weights that are zero must be so after copies were merged, too.
func TestFTRLIsAsGoodAndAsSparseOnManyNodesAsOnOne(t *testing.T) {
	data := generated(t, nil)
	c := DefaultConfig()
	c.L1, c.Batch = 5, 16
	one := newTask(t, c, data)
	_, want := simulated[Batch](t, one, one.model, 1, "adaptive", train.Options{Epochs: 4})
	t.Logf("on one node: %v", want)
	for _, name := range placement.Names() {
		task := newTask(t, c, data)
		_, q := simulated[Batch](t, task, task.model, 4, name, train.Options{Epochs: 4})
		t.Logf("%s: %v", name, q)
		if math.Abs(q.LogLoss-want.LogLoss) > 0.02 || math.Abs(q.Sparsity()-want.Sparsity()) > 0.1 {
			t.Errorf("%s on four nodes: %v, on one: %v", name, q, want)
		}
	}
}
