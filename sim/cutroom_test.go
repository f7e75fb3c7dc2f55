package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	usual "github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/train"
)

// slowCut has a cut made while workers change more rows than copies may be kept of. A slice of rows takes the
// sink of node 0 so long. It returns what the nodes' cuts were and how long they took.
func slowCut(t *testing.T, slice time.Duration) (did [2]node.CutStats, errs [2]error, took time.Duration) {
	t.Helper()
	const rows = 20_000
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: 16, Rule: optim.AdaGrad{LR: 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	network, _ := NetworkNamed("10g")
	limits := usual.Usual
	limits.Kept = 1 // so that a tenth of the rows is the bound
	c, err := New(Config{Nodes: 2, Workers: 1, Seed: 1, Model: m, Network: network, Compute: Compute{Step: 100 * time.Microsecond}, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	over := 0
	_, err = c.RunNodes(context.Background(), func(ctx context.Context, env train.Env) error {
		var wrong error
		env.Fork(2, func(i int) {
			if i == 0 {
				wrong = env.Each(ctx, func(ctx context.Context, _ int, w godwit.Worker) error {
					defer w.Finish()
					rng := rand.New(rand.NewPCG(1, uint64(env.Node)))
					keys, push := make([]godwit.Key, 20), make([]float32, 20*16)
					for over < 2 {
						for i := range keys {
							keys[i] = godwit.Key(rng.Uint64N(rows))
						}
						if err := w.Push(ctx, keys, push); err != nil {
							return err
						}
						w.Advance()
					}
					return nil
				})
				return
			}
			h := world{c, c.hosts[env.Node]}
			h.Sleep(200*time.Millisecond, nil, nil) // nearly all rows are there
			began := c.Now()
			did[env.Node], errs[env.Node] = c.Node(env.Node).Cut(ctx, 1, node.WholeCut, func(int, []uint64, []float32) error {
				if env.Node == 0 {
					h.Sleep(slice, nil, nil)
				}
				return nil
			})
			took = max(took, c.Now()-began)
			over++
		})
		return wrong
	})
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return did, errs, took
}

// Where a sink is slower than workers change rows, workers wait, at all nodes, and the cut is made.
func TestWorkersWaitForASlowSink(t *testing.T) {
	did, errs, took := slowCut(t, 50*time.Millisecond)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	t.Logf("%v, %+v", took, did)
	if did[0].Longest < 10*time.Millisecond || did[1].Longest < 10*time.Millisecond {
		t.Errorf("workers waited for %v and %v: the test is vacuous", did[0].Longest, did[1].Longest)
	}
}

// A sink that takes nothing for long holds nobody up for long: the cut is given up.
func TestNobodyWaitsForASinkThatTakesNothing(t *testing.T) {
	did, errs, took := slowCut(t, 5500*time.Millisecond)
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "took no rows for 5s") || errs[1] == nil {
		t.Errorf("after %v the cuts ended with %v and %v", took, errs[0], errs[1])
	}
	t.Logf("%v, %+v", took, did)
}
