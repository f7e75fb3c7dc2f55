package bench

import (
	"context"
	"math/rand/v2"
	"sort"

	"github.com/godwit-ps/godwit"
)

// skewCases are accesses by two workers to keys of which some are wanted often:
// the k-th most popular 1/k as often as the first (Zipf with exponent 1). The
// baseline is one worker with half of the work, so that a ratio of 1 means two
// workers are twice as fast as one.
func skewCases() []Case {
	var cs []Case
	for _, op := range []string{"pull", "push"} {
		cs = append(cs, Case{
			Name: "skew/" + op + "/100 floats/2 workers",
			Aim:  2 / 1.6,
			setup: func(ctx context.Context, o *Options) (*Duel, error) {
				return setupSkew(ctx, o, op)
			},
		})
	}
	return cs
}

func setupSkew(ctx context.Context, o *Options, op string) (*Duel, error) {
	const dim = 100
	rows := min(o.Rows, o.Memory/(8*dim+48))
	l, err := startLocal(ctx, rows, dim, 2, godwit.Add{})
	if err != nil {
		return nil, err
	}
	b := newBare(rows * dim)
	keys := zipfKeys(o.Seed, rows, 2)
	bufs := buffers(2, perCall*dim)
	path, loops := programs(ctx, op, l, b, dim)
	loop := loops[0]
	return &Duel{
		Units: 2 * perTurn * perCall, Unit: "key", Path: calls(keys, bufs, 0, path),
		Baselines: []Baseline{
			{"half of it by one worker", calls(keys[:1], bufs, 1, path)},
			{"both by the " + loop.name, calls(keys, bufs, 2, loop.call)},
			{"half by the " + loop.name, calls(keys[:1], bufs, 3, loop.call)},
		},
		Close: func() error { return closeLocal(ctx, l, b) },
	}, nil
}

// zipfKeys are the calls of each worker. Popular keys lie anywhere.
func zipfKeys(seed, rows uint64, workers int) [][][]godwit.Key {
	rng := rand.New(rand.NewPCG(seed, 2))
	sums := make([]float64, rows)
	sum := 0.0
	for i := range sums {
		sum += 1 / float64(i+1)
		sums[i] = sum
	}
	where := rng.Perm(int(rows))
	return drawKeys(workers, func() godwit.Key {
		return godwit.Key(where[min(sort.SearchFloat64s(sums, sum*rng.Float64()), len(where)-1)])
	})
}
