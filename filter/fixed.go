package filter

import (
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/named"
)

// Fixed writes values as whole multiples of a step, in few bytes. The step is
// chosen for each call and table (or for each vector, where single ones
// travel), so that the largest magnitude is the largest multiple. A value between two
// multiples is rounded to one of them at random, with probabilities in proportion to
// the nearness, so that rounding has no bias. (A fair coin, as in early systems, has a
// bias of up to a quarter of the step.)
//
// Values that are not finite stay unchanged; their vectors are written raw.
type Fixed struct {
	// Bytes of a value, 1 or 2: 127 or 32767 steps to each side of 0.
	Bytes int
	// Answers also rounds the values that pulls read at other nodes.
	Answers bool
	// Forget discards what is rounded away, instead of pushing it later.
	Forget bool
}

// FixedPoint returns the filter for pushes.
func FixedPoint(bytes int) Fixed { return Fixed{Bytes: bytes} }

func (f Fixed) Name() string {
	return named.Write("fixed", append([]named.Param{{Key: "bytes", Value: float64(f.Bytes)}}, options(f.Answers, f.Forget)...)...)
}

// Check returns what is wrong with the settings.
func (f Fixed) Check() error {
	if f.Bytes != 1 && f.Bytes != 2 {
		return fmt.Errorf("filter fixed writes values in %d bytes, want 1 or 2", f.Bytes)
	}
	return nil
}

// levels is the largest multiple of the step.
func (f Fixed) levels() float64 {
	if f.Bytes == 1 {
		return math.MaxInt8
	}
	return math.MaxInt16
}

func (f Fixed) encoding(step float32) godwit.Encoding {
	if f.Bytes == 1 {
		return godwit.Encoding{Coding: godwit.Fixed8, Step: step}
	}
	return godwit.Encoding{Coding: godwit.Fixed16, Step: step}
}

// Filter rounds.
func (f Fixed) Filter(b *godwit.FilterBatch) {
	var most float32
	for i := range b.Keys {
		if b.Sent(i) {
			most = max(most, largest(b.Vec(i)))
		}
	}
	g := f.grid(most)
	if g.step == 0 {
		return
	}
	for i := range b.Keys {
		if !b.Sent(i) {
			continue
		}
		v, later := b.Vec(i), []float32(nil)
		if !f.Forget {
			later = b.EnsureResidual(i)
		}
		for j, x := range v {
			q, chance := g.below(x)
			if chance > 0 && unit(b.Uint64()) < chance {
				q++
			}
			if chance < 0 {
				continue
			}
			if v[j] = g.at(q); !f.Forget {
				later[j] += x - v[j]
			}
		}
	}
	encode(b, f.encoding(g.step))
}

// encode has a batch that was rounded written in an encoding. Whether Sparse still shortens it is decided anew: rounded values take fewer bits.
func encode(b *godwit.FilterBatch, e godwit.Encoding) {
	sparse := b.Encoding.Coding&godwit.Sparse != 0
	if b.Encoding = e; sparse {
		Sparse{}.Filter(b)
	}
}

// Quantize rounds one vector, unless it is so short that its step would take more bytes
// than rounding saves.
func (f Fixed) Quantize(vals []float32, seed uint64) godwit.Encoding {
	g := f.grid(largest(vals))
	if g.step == 0 || len(vals)*(4-f.Bytes) < stepCost {
		return godwit.Encoding{}
	}
	s := source(seed)
	for j, x := range vals {
		q, chance := g.below(x)
		if chance > 0 && unit(s.Uint64()) < chance {
			q++
		}
		if chance >= 0 {
			vals[j] = g.at(q)
		}
	}
	return f.encoding(g.step)
}

// RelativeError returns false: the step follows the largest magnitude.
func (Fixed) RelativeError() bool { return false }

// QuantizesPulls returns f.Answers.
func (f Fixed) QuantizesPulls() bool { return f.Answers }

// stepCost is about how many bytes the step of a single vector takes.
const stepCost = 16

func (f Fixed) grid(most float32) grid {
	g := grid{levels: f.levels()}
	g.step = float32(float64(most) / g.levels)
	if math.IsInf(float64(float32(g.levels)*g.step), 0) { // because the step was rounded up
		g.step = math.Nextafter32(g.step, 0)
	}
	g.inverse = 1 / float64(g.step)
	return g
}

// largest returns the largest magnitude of the finite values.
func largest(vals []float32) (most float32) {
	for _, x := range vals {
		if x < 0 {
			x = -x
		}
		if x > most && x <= math.MaxFloat32 {
			most = x
		}
	}
	return most
}

// A grid is the set of multiples of a step. With step 0, nothing is rounded.
type grid struct {
	step    float32
	inverse float64
	levels  float64
}

// at returns a multiple with just the bits that the receiver computes, and never -0.
func (g grid) at(q float64) float32 {
	if q > g.levels {
		q = g.levels
	} else if q < -g.levels {
		q = -g.levels
	}
	return float32(float32(q)*g.step) + 0
}

// below returns the number of the multiple below x, and the probability of rounding x
// to the next one instead. The probability is 0 if x is a multiple, and negative if x is
// not finite and should stay.
func (g grid) below(x float32) (q, chance float64) {
	if x-x != 0 {
		return 0, -1
	}
	at := float64(x) * g.inverse
	q = math.Floor(at)
	if chance = at - q; chance < 1e-6 || chance > 1-1e-6 { // x may be a multiple, but for rounding
		if near := math.RoundToEven(at); g.at(near) == x {
			return near, 0
		}
	}
	return q, chance
}

// unit turns 64 random bits into a number in [0, 1).
func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// A source generates random numbers from a seed.
type source uint64

func (s *source) Uint64() uint64 {
	*s += 0x9e3779b97f4a7c15
	return godwit.Hash64(uint64(*s))
}

// options are the parameters that Fixed and BF16 share.
func options(answers, forget bool) []named.Param {
	return []named.Param{{Key: "answers", Value: one(answers)}, {Key: "forget", Value: one(forget)}}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
