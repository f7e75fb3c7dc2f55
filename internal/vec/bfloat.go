package vec

import "math"

// RoundBF16 writes the nearest values of bfloat16 to dst, which is as long as x: floats whose
// low 16 bits are zero, of two that are as near the one with the even last bit. What is not
// finite, or would not be, stays as it is.
func RoundBF16(dst, x []float32) {
	same("RoundBF16", len(dst), len(x))
	for i, v := range x {
		u := math.Float32bits(v)
		r := nearest16(u)
		if u<<1 >= stays<<1 {
			r = u
		}
		dst[i] = math.Float32frombits(r)
	}
}

// SplitBF16 rounds x as [RoundBF16] does, and adds to rest what that takes off.
func SplitBF16(x, rest []float32) {
	same("SplitBF16", len(x), len(rest))
	for i, v := range x {
		if u := math.Float32bits(v); u<<1 < stays<<1 {
			r := math.Float32frombits(nearest16(u))
			x[i] = r
			rest[i] += v - r
		}
	}
}

// nearest16 returns the bits of the nearest value of bfloat16.
func nearest16(u uint32) uint32 { return (u + 0x7fff + u>>16&1) &^ 0xffff }

// stays is the first float, in bits, that is as near to infinity as to a value of bfloat16. All behind it, without the sign, stay as they are.
const stays uint32 = 0x7f7f8000
