package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	usual "github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
)

// Workers with short steps of many keys, which they use once in a while, come to have the keys that nobody else uses, and fetch those that others use as
// well: a key that comes for one use and is elsewhere at the next one costs more than it saves. Where copies may be idle, those stay
// instead that came when the run began.
func TestKeysComeForShortStepsIfTheyStay(t *testing.T) {
	const nodes, steps, keys, rows = 4, 800, 300, 20_000
	for name, shared := range map[string]int{"own": 0, "shared": steps, "shared at first": steps / 4} { // in so many steps
		for seed := range uint64(4) {
			limits := usual.Usual
			if seed > 0 {
				limits.Idle = -1
			}
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				c := cluster(t, Config{Nodes: nodes, Workers: 1, Seed: seed, Model: model(t, rows, 2), Policy: placement.Adaptive,
					Network: Network{Latency: 20 * time.Microsecond}, Compute: Compute{Step: 300 * time.Microsecond, Spread: 0.2}, Limits: limits})
				var before [nodes]node.Stats // when the worker begins its last quarter
				r := run(t, c, func(ctx context.Context, w godwit.Worker, _ godwit.Key) error {
					n := int(w.ID().Node)
					rng := rand.New(rand.NewPCG(seed, uint64(n)))
					var order []int // the keys that are left of all
					batches := make([][]godwit.Key, steps)
					for i := range batches {
						for len(batches[i]) < keys {
							if len(order) == 0 {
								order = rng.Perm(rows)
							}
							k := order[0]
							if order = order[1:]; i < shared || k/64%nodes == n {
								batches[i] = append(batches[i], godwit.Key(k))
							}
						}
					}
					v, ones, told := make([]float32, 2*keys), slices.Repeat([]float32{1}, 2*keys), 0
					for i, b := range batches {
						if i == steps*3/4 {
							before[n] = c.Node(n).Stats()
						}
						for ; told < steps && told <= i+4; told++ {
							if err := w.Intent(batches[told], godwit.Clock(told), godwit.Clock(told+1)); err != nil {
								return err
							}
						}
						if err := w.Pull(ctx, b, v); err != nil {
							return err
						}
						h, err := w.PushAsync(ctx, b, ones)
						if err != nil {
							return err
						}
						if err := w.Wait(ctx, h); err != nil {
							return err
						}
						w.Advance()
					}
					return nil
				})
				s := r.Sum()
				for _, b := range before {
					s.Local, s.Fetched, s.Moves, s.Copies = s.Local-b.Local, s.Fetched-b.Fetched, s.Moves-b.Moves, s.Copies-b.Copies
				}
				const accesses, pulls = nodes * steps / 4 * keys * 2, nodes * steps / 4 * keys
				t.Logf("of %d pulled keys in the last quarter, %d were fetched, %d came and %d were copied; %d of %d accesses were at the main copy here", pulls, s.Fetched, s.Moves, s.Copies, s.Local, accesses)
				if shared == steps && limits.Idle == 0 {
					if s.Moves+s.Copies > pulls/50 {
						t.Errorf("keys that all nodes use come and go")
					}
				} else if shared == steps {
					if s.Fetched < pulls*6/10 || s.Moves > pulls/50 || s.Moves == 0 {
						t.Errorf("keys that all nodes use come instead of being fetched, or none comes on trial")
					}
				} else if s.Local < accesses*95/100 {
					t.Errorf("keys that one node uses are elsewhere")
				}
			})
		}
	}
}
