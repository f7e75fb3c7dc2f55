package filter

import (
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/named"
)

// BF16 writes values in 2 bytes: a float with the exponent of float32 and 8
// bits of precision. A value between two of them becomes one at random, the
// nearer the likelier (stochastic rounding: Gupta et al., ICML 2015), so rounding
// has no bias. It needs no step, so it suits
// vectors of very different lengths. Values that are no finite numbers stay as
// they are.
type BF16 struct {
	// Answers has values rounded that pulls read at other nodes.
	Answers bool
	// Forget has what is rounded away forgotten, not pushed later.
	Forget bool
}

func (f BF16) Name() string { return named.Write("bf16", options(f.Answers, f.Forget)...) }

// Filter rounds.
func (f BF16) Filter(b *godwit.FilterBatch) {
	for i := range b.Keys {
		if !b.Sent(i) {
			continue
		}
		v, later := b.Vec(i), []float32(nil)
		if !f.Forget {
			later = b.EnsureResidual(i)
		}
		for j, x := range v {
			if !inexact(x) {
				continue
			}
			if v[j] = carry(x, b.Uint64()); !f.Forget {
				later[j] += x - v[j]
			}
		}
	}
	b.Encoding = godwit.Encoding{Coding: godwit.BFloat16 | b.Encoding.Coding&godwit.Sparse}
}

// Quantize rounds one vector.
func (f BF16) Quantize(vals []float32, seed uint64) godwit.Encoding {
	s := source(seed)
	for j, x := range vals {
		if inexact(x) {
			vals[j] = carry(x, s.Uint64())
		}
	}
	return godwit.Encoding{Coding: godwit.BFloat16}
}

// MaxLoss returns LossFractions: whole numbers up to 256 take 2 bytes.
func (BF16) MaxLoss() godwit.Loss { return godwit.LossFractions }

// RelativeError returns true.
func (BF16) RelativeError() bool { return true }

// QuantizesPulls returns f.Answers.
func (f BF16) QuantizesPulls() bool { return f.Answers }

// inexact reports whether x is a finite number that takes more than 2 bytes.
func inexact(x float32) bool { return math.Float32bits(x)&0xffff != 0 && x-x == 0 }

// carry rounds x. The low 16 bits are how far it lies between its neighbours, in
// parts of 65536: to carry by that chance is to add a random number below 65536.
func carry(x float32, random uint64) float32 {
	u := math.Float32bits(x)
	to := math.Float32frombits((u + uint32(random>>48)) &^ 0xffff)
	if to-to != 0 { // beyond the largest
		to = math.Float32frombits(u &^ 0xffff)
	}
	return to
}
