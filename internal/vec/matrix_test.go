package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit/internal/racing"
	"github.com/godwit-ps/godwit/internal/seedtest"
)

// A product is one of the matrix products, and what it computes: element
// (i, j) of a result of rows×cols is the sum over p of x(i,p)·y(p,j).
type product struct {
	name             string
	f                func(dst, x, y []float32, m, n, k int)
	add              bool
	rows, cols, deep func(m, n, k int) int
	x, y             func(i, p, m, n, k int) int // indices; y's are of (p, j)
}

func dimM(m, _, _ int) int { return m }
func dimN(_, n, _ int) int { return n }
func dimK(_, _, k int) int { return k }

var products = []product{
	{"MulABt", MulABt, false, dimM, dimN, dimK,
		func(i, p, _, _, k int) int { return i*k + p },
		func(p, j, _, _, k int) int { return j*k + p }},
	{"MulAB", MulAB, false, dimM, dimK, dimN,
		func(i, p, _, n, _ int) int { return i*n + p },
		func(p, j, _, _, k int) int { return p*k + j }},
	{"AddMulAB", AddMulAB, true, dimM, dimK, dimN,
		func(i, p, _, n, _ int) int { return i*n + p },
		func(p, j, _, _, k int) int { return p*k + j }},
	{"AddMulAtB", AddMulAtB, true, dimN, dimK, dimM,
		func(i, p, _, n, _ int) int { return p*n + i },
		func(p, j, _, _, k int) int { return p*k + j }},
}

func (q product) test(t *testing.T, r *rand.Rand, m, n, k int) {
	t.Helper()
	rows, cols, deep := q.rows(m, n, k), q.cols(m, n, k), q.deep(m, n, k)
	x, checkX := guarded(r, rows*deep, ordinary(r))
	y, checkY := guarded(r, deep*cols, ordinary(r))
	dst, check := guarded(r, rows*cols, ordinary(r))
	old := append([]float32(nil), dst...)
	if !q.add {
		for i := range dst {
			dst[i] = float32(math.NaN()) // must not be read
		}
	}
	q.f(dst, x, y, m, n, k)
	what := fmt.Sprintf("%s of m=%d n=%d k=%d", q.name, m, n, k)
	for i := range rows {
		for j := range cols {
			var want, size float64
			if q.add {
				want = float64(old[i*cols+j])
				size = math.Abs(want)
			}
			for p := range deep {
				z := float64(x[q.x(i, p, m, n, k)]) * float64(y[q.y(p, j, m, n, k)])
				want += z
				size += math.Abs(z)
			}
			checkSum(t, what, dst[i*cols+j], want, size, deep+1)
		}
	}
	checkX(t, what)
	checkY(t, what)
	check(t, what)
}

func TestMatrixProductsAreWithinTheirBoundForAllSmallShapes(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seedtest.Rand(t)
		sizes := []int{0, 1, 2, 5, 6, 7, 8, 9, 16, 17, 33}
		if racing.Enabled {
			sizes = []int{0, 1, 7, 17} // one goroutine calculates
		}
		for _, q := range products {
			for _, m := range sizes {
				for _, n := range sizes {
					for _, k := range sizes {
						q.test(t, r, m, n, k)
					}
				}
			}
		}
	})
}

func TestMatrixProductsAreWithinTheirBoundBeyondTheBlockSizes(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seedtest.Rand(t)
		for _, q := range products {
			for _, s := range [][3]int{{256, 192, 137}, {200, 7, 9}, {7, 530, 9}, {7, 9, 530}, {195, 33, 260}, {260, 195, 33}, {9, 260, 520}, {1, 600, 300}} {
				if racing.Enabled && s[0] > 200 {
					continue
				}
				q.test(t, r, s[0], s[1], s[2])
			}
			for range 2 {
				q.test(t, r, 1+r.IntN(220), 1+r.IntN(120), 1+r.IntN(120))
			}
		}
	})
}

func TestMatrixProductsKeepNaNAndInfinityInTheirRowAndColumn(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		const m, n, k = 13, 21, 19
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
			for _, q := range products {
				rows, cols, deep := q.rows(m, n, k), q.cols(m, n, k), q.deep(m, n, k)
				for i := range rows {
					x, y, dst := ones(rows*deep), ones(deep*cols), ones(rows*cols)
					x[q.x(i, deep-1, m, n, k)] = bad
					q.f(dst, x, y, m, n, k)
					for c, v := range dst {
						finite := !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0)
						if finite != (c/cols != i) {
							t.Fatalf("%s with %v in row %d: element (%d,%d) is %v", q.name, bad, i, c/cols, c%cols, v)
						}
					}
				}
			}
		}
	})
}

func ones(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 1
	}
	return x
}

// FuzzMatrixProducts looks for shapes that a block boundary gets wrong.
func FuzzMatrixProducts(f *testing.F) {
	f.Add(uint16(6), uint16(16), uint16(256), uint64(1))
	f.Fuzz(func(t *testing.T, m, n, k uint16, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 2))
		for _, q := range products {
			q.test(t, r, int(m%230), int(n%530), int(k%270))
		}
	})
}
