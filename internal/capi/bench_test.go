package capi

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/godwit-ps/godwit"
)

// BenchmarkRows is the loop in Go that python/bench/raw.py is compared with: pulls and pushes of
// random rows of 64 floats, other ones each time.
func BenchmarkRows(b *testing.B) {
	const rows, dim, sets = 200_000, 64, 20
	c := open(b, Config{Tables: []Table{{Name: "t", Rows: rows, Dim: dim, Rule: "adagrad(lr=0.1)"}}})
	w := worker(b, c, 0)
	ctx, g := context.Background(), rand.New(rand.NewPCG(1, 1))
	all := make([]godwit.Key, rows)
	for i := range all {
		all[i] = w.cluster.tables[0].first + godwit.Key(i)
	}
	every := make([]float32, rows*dim)
	for i := range every {
		every[i] = 0.01
	}
	must(b, w.w.Push(ctx, all, every)) // so that rows exist
	for _, n := range []int{1000, 10_000} {
		vals, keys := every[:n*dim], make([][]godwit.Key, sets)
		for i := range keys {
			for range n {
				keys[i] = append(keys[i], all[g.IntN(rows)])
			}
		}
		for name, f := range map[string]func(context.Context, []godwit.Key, []float32) error{"pull": w.w.Pull, "push": w.w.Push} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				i, begin := 0, processorTime(b)
				for b.Loop() {
					must(b, f(ctx, keys[i%sets], vals))
					i++
				}
				b.ReportMetric(float64(processorTime(b)-begin)/float64(i), "cpu-ns/op")
			})
		}
	}
}

// processorTime returns what this process has used, in nanoseconds.
func processorTime(b *testing.B) int64 {
	var r syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return r.Utime.Nano() + r.Stime.Nano()
}

// BenchmarkStep is what python/bench/calls.py has the library do in a step: rows are looked up, their gradients added and
// pushed. Keys are Zipf's, and new in each step.
func BenchmarkStep(b *testing.B) {
	const rows, dim, keys, sets = 1_000_000, 64, 10_000, 50
	for _, rule := range []string{"ratedsgd", "ratedadagrad", "sparseadam"} {
		b.Run(rule, func(b *testing.B) {
			c := open(b, Config{Tables: []Table{{Name: "t", Rows: rows, Dim: dim, Rule: rule}}})
			w, g := worker(b, c, 0), rand.New(rand.NewPCG(1, 1))
			some, all := make([]float32, keys*dim), make([]int64, keys)
			for i := 0; i < rows; i += keys { // so that rows exist
				for j := range all {
					all[j] = int64(i + j)
				}
				must(b, call(w.Push(0, all, some, 1, 1, 0, -1)))
			}
			perm, batches := g.Perm(rows), make([][]int64, sets)
			zipf := zipf(g, 1.15)
			for i := range batches {
				for range keys {
					batches[i] = append(batches[i], int64(perm[(zipf()-1)%rows]))
				}
			}
			unique, where, sums, grad := make([]int64, keys), make([]int64, keys), make([]float32, keys*dim), []float32{}
			for range dim {
				grad = append(grad, 0.01)
			}
			i, begin := 0, processorTime(b)
			for b.Loop() {
				batch := batches[i%sets]
				n, _, err := w.Lookup(0, batch, unique, where, some, -1)
				must(b, err)
				must(b, Add(where, grad, 1, 0, dim, sums[:n*dim]))
				must(b, call(w.Push(0, unique[:n], sums[:n*dim], 0.01, 1, Finite, 0)))
				i++
			}
			b.ReportMetric(float64(processorTime(b)-begin)/float64(i), "cpu-ns/op")
		})
	}
}

// zipf draws numbers from 1 on with probabilities that fall as those numbers to the power of -a, as numpy's zipf does.
func zipf(g *rand.Rand, a float64) func() uint64 {
	b := math.Pow(2, a-1)
	return func() uint64 {
		for {
			u, v := 1-g.Float64(), g.Float64()
			x := math.Floor(math.Pow(u, -1/(a-1)))
			if t := math.Pow(1+1/x, a-1); x < 1<<62 && v*x*(t-1)/(b-1) <= t/b {
				return uint64(x)
			}
		}
	}
}
