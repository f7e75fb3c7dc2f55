package kge

import (
	"math"

	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

var minusInf = float32(math.Inf(-1))

// distEps is added to squared distances, so that the gradient of the root is
// finite where query and candidate are one.
const distEps = 1e-9

// euclid is the distance of two vectors.
func euclid(a, b []float32) float32 {
	var sum float32
	for i := range a {
		d := a[i] - b[i]
		sum += d * d
	}
	return float32(math.Sqrt(float64(sum + distEps)))
}

// toDistances turns the dot products of one query with candidates into their
// distances, given the squared norms of both: ‖q − c‖² = ‖q‖² + ‖c‖² − 2·q·c,
// where rounding may make less than 0 of what is nearly 0.
func toDistances(dots []float32, query float32, cands []float32) {
	for j, dot := range dots {
		x := query + cands[j] - 2*dot
		if x < 0 {
			x = 0
		}
		dots[j] = float32(math.Sqrt(float64(x + distEps)))
	}
}

// squaredNorms writes the squared norm of each row of d floats.
func squaredNorms(dst, rows []float32, d int) {
	for i := range dst {
		dst[i] = vec.SquaredNorm(buffer.Row(rows, int32(i), d))
	}
}
