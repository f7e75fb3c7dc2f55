package vec

import "math"

// SumSoftplus returns Σ log(1 + e^x[i]), 0 for an empty vector, and computes
// x[i] = 1/(1 + e^-x[i]) as [Sigmoid] does: the loss of logistic negatives, and its
// derivative. The sum has an error below 2⁻²¹ of it and len(x)·2⁻⁵², without overflow.
// NaN gives NaN.
//
// log(1 + eˣ) is max(x, 0) − log max(σ(x), 1 − σ(x)), and a product of 512 factors of
// at least ½ is still a float64, and needs one logarithm.
func SumSoftplus(x []float32) float64 {
	sum := sumPositive(x)
	Sigmoid(x, x)
	for len(x) > 0 {
		n := min(512, len(x))
		sum -= math.Log(productOfLarger(x[:n]))
		x = x[n:]
	}
	return sum
}

// sumPositive is Σ max(x, 0), in four lanes, which a processor can do at once.
func sumPositive(x []float32) float64 {
	var a, b, c, d float64
	for len(x) >= 4 {
		a += float64(Positive(x[0]))
		b += float64(Positive(x[1]))
		c += float64(Positive(x[2]))
		d += float64(Positive(x[3]))
		x = x[4:]
	}
	for _, v := range x {
		a += float64(Positive(v))
	}
	return (a + b) + (c + d)
}

// Positive is max(x, 0); NaN gives NaN or 0, by its sign. It has no branch, which would be guessed wrong.
func Positive(x float32) float32 {
	b := math.Float32bits(x)
	return math.Float32frombits(b &^ uint32(int32(b)>>31))
}

// productOfLarger is Π max(s, 1−s), where s is 0 … 1.
func productOfLarger(s []float32) float64 {
	a, b, c, d := 1.0, 1.0, 1.0, 1.0
	for len(s) >= 4 {
		a *= larger(s[0])
		b *= larger(s[1])
		c *= larger(s[2])
		d *= larger(s[3])
		s = s[4:]
	}
	for _, v := range s {
		a *= larger(v)
	}
	return (a * b) * (c * d)
}

// larger is max(s, 1−s) without a comparison. As a float64 it is exact.
func larger(s float32) float64 { return 0.5 + math.Abs(float64(s)-0.5) }
