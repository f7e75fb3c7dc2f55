package vec

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// The benchmarks report "×plain": how many times as fast as the plain loop the
// kernel is, and "best-ns/op", its time. Both are the best of several short
// turns that the two take one after the other, which other load disturbs least.

// contest reports both, and returns the kernel's best time in seconds.
func contest(b *testing.B, fast, plain func()) float64 {
	f, p := math.Inf(1), math.Inf(1)
	for range 12 {
		f = min(f, turn(fast))
		p = min(p, turn(plain))
	}
	b.ReportMetric(f*1e9, "best-ns/op")
	b.ReportMetric(p/f, "×plain")
	return f
}

// turn is the mean time of a call in some 300 µs of them.
func turn(f func()) float64 {
	calls, batch := 0, 1
	for start := time.Now(); ; batch *= 2 {
		for range batch {
			f()
		}
		calls += batch
		if d := time.Since(start); d > 300*time.Microsecond {
			return d.Seconds() / float64(calls)
		}
	}
}

func vectors(count, n int) [][]float32 {
	v := make([][]float32, count)
	for i := range v {
		v[i] = ones(n)
	}
	return v
}

func BenchmarkElementwise(b *testing.B) {
	for _, k := range exact {
		for _, n := range []int{8, 10, 32, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", k.name, n), func(b *testing.B) {
				v := vectors(k.vectors, n)
				for b.Loop() {
					k.fast(v, 1e-9)
				}
				contest(b, func() { k.fast(v, 1e-9) }, func() { k.plain(v, 1e-9) })
			})
		}
	}
}

func BenchmarkDot(b *testing.B) {
	for _, n := range []int{4, 8, 10, 32, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v := vectors(2, n)
			var s float32
			for b.Loop() {
				s += Dot(v[0], v[1])
			}
			contest(b, func() { s += Dot(v[0], v[1]) }, func() { s += plainDot(v[0], v[1]) })
		})
	}
}

func BenchmarkMatrix(b *testing.B) {
	plain := map[string]func(dst, x, y []float32, m, n, k int){"MulABt": plainMulABt, "MulAB": plainMulAB, "AddMulAB": plainAddMulAB, "AddMulAtB": plainAddMulAtB}
	for _, q := range products {
		for _, s := range [][3]int{{1, 64, 128}, {4, 64, 128}, {16, 16, 16}, {128, 64, 32}, {128, 100, 10}, {128, 128, 128}, {256, 256, 100}, {1024, 256, 128}, {512, 512, 256}, {1024, 1024, 128}} {
			m, n, k := s[0], s[1], s[2]
			b.Run(fmt.Sprintf("%s/%dx%dx%d", q.name, m, n, k), func(b *testing.B) {
				dst := ones(q.rows(m, n, k) * q.cols(m, n, k))
				x, y := ones(q.rows(m, n, k)*q.deep(m, n, k)), ones(q.deep(m, n, k)*q.cols(m, n, k))
				for b.Loop() {
					q.f(dst, x, y, m, n, k)
				}
				flop := 2 * float64(m) * float64(n) * float64(k)
				best := contest(b, func() { q.f(dst, x, y, m, n, k) }, func() { plain[q.name](dst, x, y, m, n, k) })
				b.ReportMetric(flop/best/1e9, "GFlop/s")
			})
		}
	}
}
