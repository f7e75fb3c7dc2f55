package filter

import (
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/named"
)

// BF16 writes values in 2 bytes: a float with the exponent of float32 and 8
// bits of precision. A value between two of them becomes one at random, the
// nearer the likelier, so rounding has no bias. It needs no step, so it suits
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
func (f BF16) Filter(b *godwit.Batch) {
	for i := range b.Keys {
		if !b.Sent(i) {
			continue
		}
		v := b.Vec(i)
		for j, x := range v {
			if to := bf16(x, b); f.Forget {
				v[j] = to
			} else if to != x {
				b.Round(i, j, to)
			}
		}
	}
	b.Form = godwit.Form{Coding: godwit.BFloat16 | b.Form.Coding&godwit.Sparse}
}

// Round rounds one vector.
func (f BF16) Round(vals []float32, seed uint64) godwit.Form {
	s := source(seed)
	for j, x := range vals {
		vals[j] = bf16(x, &s)
	}
	return godwit.Form{Coding: godwit.BFloat16}
}

// Loses returns Fractions: whole numbers up to 256 take 2 bytes.
func (BF16) Loses() godwit.Loss { return godwit.Fractions }

// Relative returns true.
func (BF16) Relative() bool { return true }

// RoundsAnswers returns f.Answers.
func (f BF16) RoundsAnswers() bool { return f.Answers }

// bf16 rounds x. The low 16 bits are how far it lies between its neighbours, in
// parts of 65536: to carry by that chance is to add a random number below 65536.
func bf16(x float32, random interface{ Uint64() uint64 }) float32 {
	u := math.Float32bits(x)
	if u&0xffff == 0 || x-x != 0 {
		return x
	}
	to := math.Float32frombits((u + uint32(random.Uint64()>>48)) &^ 0xffff)
	if to-to != 0 { // carried beyond the largest
		to = math.Float32frombits(u &^ 0xffff)
	}
	return to
}
