package filter

import (
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/named"
)

// BF16 writes values in 2 bytes: a float with the exponent of float32 and 8
// bits of precision. A value between two of these is rounded to one of them at random,
// to the nearer one with the higher probability (stochastic rounding: Gupta et al.,
// ICML 2015), so that rounding has no bias. It needs no common step, so it suits tables
// whose vectors differ much in magnitude. Values that are not finite stay unchanged.
type BF16 struct {
	// Answers also rounds the values that pulls read at other nodes.
	Answers bool
	// Forget discards what is rounded away, instead of pushing it later.
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
	encode(b, godwit.Encoding{Coding: godwit.BFloat16})
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

// inexact reports whether x is finite and has no exact form of 2 bytes.
func inexact(x float32) bool { return math.Float32bits(x)&0xffff != 0 && x-x == 0 }

// carry rounds x at random. The low 16 bits are the distance from the lower neighbour,
// in units of 1/65536 of the gap: adding a random number below 65536 carries with just
// that probability.
func carry(x float32, random uint64) float32 {
	u := math.Float32bits(x)
	to := math.Float32frombits((u + uint32(random>>48)) &^ 0xffff)
	if to-to != 0 { // beyond the largest
		to = math.Float32frombits(u &^ 0xffff)
	}
	return to
}
