package vec

import "math"

// e^x is computed as 2^n·e^r with n the integer nearest to x/ln 2 and
// |r| ≤ ln(2)/2, and e^r as 1 + r + r²·q(r). The coefficients of q were fitted
// to (e^r-1-r)/r² for the least relative error of the sum (9·10⁻⁴ units in the
// last place before rounding).
const (
	expMax = 89   // e^x is +Inf from here on
	expMin = -104 // e^x is 0 from here on

	log2E = 1.4426950408889634
	ln2Hi = 0.693359375 // 9 bits, so that n·ln2Hi is exact
	ln2Lo = -2.12194440054690583e-4

	// Adding roundBias leaves the nearest integer in the low bits of the sum.
	roundBias     = 0x1.8p23
	roundBiasBits = 0x4b400000

	expQ0 = 0.5
	expQ1 = 0.16666666
	expQ2 = 0.041666295
	expQ3 = 0.008333498
	expQ4 = 0.0013944703
	expQ5 = 0.00019790299
)

// exp1 is e^x of one number. The order of operations is that of the assembly.
func exp1(x float32) float32 {
	if x > expMax {
		x = expMax
	}
	if x < expMin {
		x = expMin
	}
	biased := float32(x*log2E) + roundBias
	n := biased - roundBias
	k := int32(math.Float32bits(biased) - roundBiasBits)
	r := x - float32(n*ln2Hi)
	r -= float32(n * ln2Lo)
	q := float32(float32(expQ5)*r) + expQ4
	q = float32(q*r) + expQ3
	q = float32(q*r) + expQ2
	q = float32(q*r) + expQ1
	q = float32(q*r) + expQ0
	y := float32(float32(float32(r*r)*q)+r) + 1
	// In two factors, each of which is a normal number though 2^k may not be.
	k1 := k >> 1
	return float32(y*pow2(k1)) * pow2(k-k1)
}

// pow2 is 2^k for -126 ≤ k ≤ 127. Other k, which come of a NaN only, give some
// number.
func pow2(k int32) float32 { return math.Float32frombits(uint32(k+127) << 23) }

func plainExp(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = exp1(v)
	}
}

func plainExpSum(x []float32, less float32) float32 {
	var s float32
	for i, v := range x {
		x[i] = exp1(v - less)
		s += x[i]
	}
	return s
}

// plainSigmoid takes the exponential of a number that is not positive, so it
// neither overflows nor loses the small results.
func plainSigmoid(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		e := exp1(math.Float32frombits(math.Float32bits(v) | 1<<31))
		n := e
		if math.Float32bits(v)>>31 == 0 {
			n = 1
		}
		dst[i] = n / (1 + e)
	}
}
