package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"sort"

	"github.com/godwit-ps/godwit"
)

// skewCases are accesses by two workers to keys of which some are wanted often:
// the k-th most popular 1/k as often as the first (Zipf with exponent 1). The
// baseline is one worker with half of the work, so that a ratio of 1 means two
// workers are twice as fast as one. Other baselines show what the machine can
// do: the loop without any synchronisation by both, on one table, and on a table
// each, where nothing at all is shared.
func skewCases() []Case {
	var cs []Case
	for _, op := range []string{"pull", "push"} {
		cs = append(cs, Case{
			Name: "skew/" + op + "/100 floats/2 workers",
			Aim:  2 / 1.6,
			setup: func(ctx context.Context, o *Options) (*Comparison, error) {
				return setupSkew(ctx, o, op)
			},
		})
	}
	return cs
}

func setupSkew(ctx context.Context, o *Options, op string) (*Comparison, error) {
	const dim = 100
	rows := min(o.Rows, o.Memory/(12*dim+48))
	l, err := startLocal(ctx, rows, dim, 2, godwit.Add{})
	if err != nil {
		return nil, err
	}
	b, other := newBare(rows*dim).back(), newBare(rows*dim).back()
	keys := zipfKeys(o.Seed, rows, 2)
	bufs := buffers(2, perCall*dim)
	path, loops := programs(ctx, op, l, b, dim)
	_, others := programs(ctx, op, l, other, dim)
	loop := loops[0]
	apart := func(w int, keys []godwit.Key, buf []float32) error {
		return [2]call{loop.call, others[0].call}[w](w, keys, buf)
	}
	d := &Comparison{Units: 2 * perTurn * perCall, Unit: "key"}
	team := d.onThreads(2)
	d.Path = calls(team, keys, bufs, 0, path)
	d.Baselines = []Baseline{
		{"half of it by one worker", calls(team, keys[:1], bufs, 1, path)},
		{"both by the " + loop.name, calls(team, keys, bufs, 2, loop.call)},
		{"both, a table each", calls(team, keys, bufs, 3, apart)},
		{"half by the " + loop.name, calls(team, keys[:1], bufs, 4, loop.call)},
	}
	d.Close = func() error { team.close(); return errors.Join(closeLocal(ctx, l, b), other.mem.Free()) }
	return d, nil
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
