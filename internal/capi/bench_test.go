package capi

import (
	"context"
	"fmt"
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
