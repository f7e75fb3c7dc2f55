//go:build !race

package linear

// The simulator is one goroutine, which the race detector would make slow for
// nothing.

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/protocol/placement"
	"github.com/godwit-ps/godwit/sim/simtest"
	"github.com/godwit-ps/godwit/train"
)

// simulated trains a task on simulated nodes, over a network with jitter and
// spikes, and returns the report and the quality of node 0.
func simulated[D any](t *testing.T, task judging[D], m *model, nodes int, policy string, o train.Options) (*train.Report, Quality) {
	t.Helper()
	c := simtest.Storm(t, nodes, policy, 3, 200*time.Microsecond, task.Tables())
	var report *train.Report
	var quality Quality
	if _, err := c.RunNodes(t.Context(), func(ctx context.Context, env train.Env) error {
		r, err := train.Run(ctx, env, task, o)
		if err != nil {
			return err
		}
		q, err := m.Judge(ctx, &env, "test", m.data.Test)
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
		r, q := simulated[Phase](t, task, task.model, 1+i%4, name, train.Options{Epochs: 5})
		last := r.Losses[4].Sum
		if i == 0 {
			want = last
		}
		if math.Abs(last/want-1) > 1e-5 {
			t.Errorf("%s on %d nodes: the objective ends at %v, others at %v (%v)", name, 1+i%4, last, want, q)
		}
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
