//go:build !race

package mf

// The simulator is one goroutine, which the race detector would make slow for
// nothing.

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/internal/simtest"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/train"
)

func generated(t *testing.T) *ratings.Set {
	t.Helper()
	s := ratings.DefaultSpec()
	s.Rows, s.Cols, s.Cells, s.Rank = 200, 100, 6000, 2
	set, err := ratings.Generate(s)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// simulated trains on simulated nodes and returns the RMSE of the test and the
// share of accesses that needed no message.
func simulated(t *testing.T, c Config, set *ratings.Set, nodes int, policy string, seed uint64, epochs int) (rmse, quiet float64) {
	t.Helper()
	task, err := New(c, set)
	if err != nil {
		t.Fatal(err)
	}
	cluster := simtest.Storm(t, nodes, policy, seed, 100*time.Microsecond, task.Tables())
	r, err := cluster.RunNodes(t.Context(), func(ctx context.Context, env train.Env) error {
		if _, err := train.Run(ctx, env, task, train.Options{Epochs: epochs}); err != nil {
			return err
		}
		x, err := task.RMSE(ctx, &env, "test", set.Test)
		if env.Node == 0 {
			rmse = x
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Sum()
	return rmse, 1 - float64(s.Remote+s.Queued)/float64(s.Accesses())
}

// Each policy takes the same blocks in the same order, so all have the outcome of
// the run that is serial, but for the rounding of sums at replicas.
func TestBlocksEndTheSameUnderEveryPolicy(t *testing.T) {
	set, c := generated(t), small(Blocks)
	c.LR = 0.05
	var first float64
	for i, policy := range placement.Names() {
		rmse, quiet := simulated(t, c, set, 4, policy, 3, 4)
		t.Logf("%s: RMSE %v, %.2f %% of accesses without a message", policy, rmse, 100*quiet)
		if i == 0 {
			first = rmse
		}
		if math.Abs(rmse/first-1) > 1e-5 {
			t.Errorf("%s: the RMSE is %v, under %s %v", policy, rmse, placement.Names()[0], first)
		}
	}
}

// Parameter blocking leaves nothing to reach by message where keys can move, but
// the evaluation, which is not announced.
func TestBlocksAreLocalWhereKeysMove(t *testing.T) {
	set, c := generated(t), small(Blocks)
	set.Valid, set.Test = set.Valid[:10], set.Test[:10]
	for _, policy := range []string{"adaptive", "adaptive-move-only", "relocate"} {
		if _, quiet := simulated(t, c, set, 4, policy, 3, 4); quiet < 0.99 {
			t.Errorf("%s: %.2f %% of accesses needed no message, want 99 %%", policy, 100*quiet)
		}
	}
}

// Replicas of what is trained everywhere are behind, most so where every node has
// one of everything, and every node steps from what it sees. How far behind follows from the network: of single seeds, the outcome
// varies by a tenth.
func TestOrdersAreNearlyAsGoodOnFourNodesAsOnOne(t *testing.T) {
	set := generated(t)
	for _, order := range []string{Plain, Columns} {
		c := small(order)
		c.LR = 0.02
		want, _ := simulated(t, c, set, 1, "adaptive", 3, 12)
		for _, policy := range placement.Names() {
			seeds := 2
			if policy == "adaptive" {
				seeds = 12
			}
			var rmse, quiet float64
			for seed := range seeds {
				x, q := simulated(t, c, set, 4, policy, 3+uint64(seed), 12)
				rmse, quiet = rmse+x/float64(seeds), quiet+q/float64(seeds)
			}
			t.Logf("%s, %s: RMSE %.4f, on one node %.4f, %.2f %% without a message", order, policy, rmse, want, 100*quiet)
			most := 1.03
			switch policy {
			case "adapm", "adaptive":
				most = 1.06
			case "adaptive-replicate-only", "replicate":
				most = 1.15
			}
			if rmse > most*want {
				t.Errorf("%s, %s: the RMSE on four nodes is %.4f, on one %.4f", order, policy, rmse, want)
			}
		}
	}
}
