package vec

import "math"

// RoundBF16 writes the nearest values of bfloat16 to dst, which is as long as x: floats whose
// low 16 bits are zero, of two that are as near the one with the even last bit. What is not
// finite, or would not be, stays as it is.
func RoundBF16(dst, x []float32) {
	same("RoundBF16", len(dst), len(x))
	for i, v := range x {
		u := math.Float32bits(v)
		r := (u + 0x7fff + u>>16&1) &^ 0xffff
		if u&infinite == infinite || r&infinite == infinite {
			r = u
		}
		dst[i] = math.Float32frombits(r)
	}
}

// SplitBF16 rounds x as [RoundBF16] does, and adds to rest what that takes off.
func SplitBF16(x, rest []float32) {
	same("SplitBF16", len(x), len(rest))
	for i, v := range x {
		u := math.Float32bits(v)
		r := (u + 0x7fff + u>>16&1) &^ 0xffff
		if u&infinite == infinite || r&infinite == infinite {
			continue
		}
		x[i] = math.Float32frombits(r)
		rest[i] += v - x[i]
	}
}

const infinite = 0xff << 23 // the exponent of what is not finite
