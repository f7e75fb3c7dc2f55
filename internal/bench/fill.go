package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
)

// fillCases are the start of a node and the first access to each of its rows,
// which makes it. The baselines write as much memory once, with as many
// goroutines: memory that is taken from the system for that, as the path has to,
// and memory that is there already.
func fillCases() []Case {
	var cs []Case
	for _, f := range []filling{
		{"random calls of 100", 4, godwit.Zero{}, inCalls(100, false)},
		{"sorted calls of 1000", 4, godwit.Zero{}, inCalls(1000, true)},
		{"ranges", 4, godwit.Zero{}, inRanges},
		{"ranges", 4, godwit.Uniform{Lo: -1, Hi: 1}, inRanges},
		{"ranges", 100, godwit.Uniform{Lo: -1, Hi: 1}, inRanges},
	} {
		cs = append(cs, Case{Name: fmt.Sprintf("fill/%d floats, %s/%s", f.dim, f.init.Name(), f.name), setup: f.setup})
	}
	return cs
}

// A filling is a way to make all rows of a table.
type filling struct {
	name string
	dim  int
	init godwit.Init
	// plan returns how a worker accesses its keys, which are count from first on.
	plan func(rng *rand.Rand, first, count uint64, dim int) access
}

type access func(ctx context.Context, w godwit.Worker) error

// inCalls accesses the keys in an order that has been drawn, so many a call,
// which may be sorted.
func inCalls(size int, sorted bool) func(*rand.Rand, uint64, uint64, int) access {
	return func(rng *rand.Rand, first, count uint64, dim int) access {
		order := make([]uint32, count)
		for i := range order {
			order[i] = uint32(first) + uint32(i)
		}
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if sorted {
			for part := range slices.Chunk(order, size) {
				slices.Sort(part)
			}
		}
		keys, buf := make([]godwit.Key, size), make([]float32, size*dim)
		return func(ctx context.Context, w godwit.Worker) error {
			for part := range slices.Chunk(order, size) {
				for i, k := range part {
					keys[i] = godwit.Key(k)
				}
				if err := w.Pull(ctx, keys[:len(part)], buf[:len(part)*dim]); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

// inRanges accesses the keys in order, a range after the other.
func inRanges(_ *rand.Rand, first, count uint64, dim int) access {
	const size = 1 << 14
	buf := make([]float32, min(count, size)*uint64(dim))
	return func(ctx context.Context, w godwit.Worker) error {
		for k, end := first, first+count; k < end; k += size {
			n := min(size, end-k)
			if err := godwit.PullRange(ctx, w, godwit.Key(k), godwit.Key(k+n), buf[:n*uint64(dim)]); err != nil {
				return err
			}
		}
		return nil
	}
}

func (f *filling) setup(ctx context.Context, o *Options) (*Comparison, error) {
	rows := min(16*o.Rows/uint64(max(f.dim/4, 4)), o.Memory/uint64(2*(48+4*f.dim)), 1<<32)
	workers := min(runtime.GOMAXPROCS(0), 64)
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: f.dim, Init: f.init})
	if err != nil {
		return nil, err
	}
	parts := make([]access, workers)
	rng := rand.New(rand.NewPCG(o.Seed, 5))
	for i := range parts {
		first, end := rows*uint64(i)/uint64(workers), rows*uint64(i+1)/uint64(workers)
		parts[i] = f.plan(rng, first, end-first, f.dim)
	}
	var took time.Duration
	var there *bare
	bytes := uint64(0) // what the node took
	fill := func() error {
		began := time.Now()
		c, err := node.Local(ctx, 1, node.Config{Model: m, Workers: workers})
		if err != nil {
			return err
		}
		errs := make([]error, workers)
		together(workers, func(i int) { errs[i] = parts[i](ctx, c.Nodes[0].Worker(i)) })
		took = time.Since(began)
		s := c.Nodes[0].Stats()
		if s.Owned != int(rows) {
			errs = append(errs, fmt.Errorf("%d of %d rows were made", s.Owned, rows))
		}
		bytes = uint64(s.Bytes)
		return errors.Join(append(errs, c.Close(ctx))...)
	}
	write := func(b *bare) {
		together(workers, func(i int) {
			part := b.rows[len(b.rows)*i/workers : len(b.rows)*(i+1)/workers]
			for j := range part {
				part[j] = 1
			}
		})
	}
	return &Comparison{
		Units: int(rows), Unit: "row", Path: fill,
		Baselines: []Baseline{
			{"write new memory once", func() error {
				began := time.Now()
				b := newBare(bytes / 4)
				write(b)
				took = time.Since(began)
				return b.mem.Free()
			}},
			{"write memory that is there", func() error {
				if there == nil {
					there = newBare(bytes / 4).back()
				}
				began := time.Now()
				write(there)
				took = time.Since(began)
				return nil
			}},
		},
		Clock: func() (time.Duration, bool) { return took, true },
		Close: func() error {
			if there == nil {
				return nil
			}
			return there.mem.Free()
		},
	}, nil
}

// together has as many goroutines call f, each with its number.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
