package kge

import (
	"math"

	"github.com/godwit-ps/godwit/internal/vec"
)

// realN3 adds w times the gradient of Σ|x|³ to g.
func realN3(g, x []float32, w float32) {
	g = g[:len(x)]
	for i, v := range x {
		g[i] += 3 * w * v * float32(math.Abs(float64(v)))
	}
}

// complexN3 adds w times the gradient of Σ|x|³ to g, over the moduli of
// complex elements: the weighted nuclear 3-norm of Lacroix, Usunier, Obozinski
// (ICML 2018), equation 4, when it is added once for each occurrence.
func complexN3(g, x []float32, w float32) {
	vec.AddMulModulus(g, x, 3*w)
}
