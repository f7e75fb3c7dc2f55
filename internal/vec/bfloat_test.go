package vec

import (
	"math"
	"math/rand/v2"
	"testing"
)

// nearestBF16 finds the nearest value by trying both neighbours.
func nearestBF16(x float32) float32 {
	low := math.Float32frombits(math.Float32bits(x) &^ 0xffff) // towards zero
	high := math.Float32frombits(math.Float32bits(x)&^0xffff + 1<<16)
	if d := math.Abs(float64(x)-float64(low)) - math.Abs(float64(high)-float64(x)); d < 0 || d == 0 && math.Float32bits(low)>>16&1 == 0 {
		return low
	}
	return high
}

func TestRoundingIsToTheNearestValueOfTwoBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const many = 200_000
	x := make([]float32, many)
	for i := range x {
		x[i] = math.Float32frombits(rng.Uint32())
		if i%4 == 0 { // near the middle of two
			x[i] = math.Float32frombits(rng.Uint32()&^0xffff | 0x7fff + rng.Uint32N(3))
		}
	}
	got, split, rest := make([]float32, many), append([]float32(nil), x...), make([]float32, many)
	RoundBF16(got, x)
	SplitBF16(split, rest)
	for i, v := range x {
		want := nearestBF16(v)
		if math.Float32bits(v)&^(1<<31) >= 0x7f7f8000 { // is not finite, or nearer to infinity
			want = v
		}
		if math.Float32bits(got[i]) != math.Float32bits(want) || math.Float32bits(split[i]) != math.Float32bits(want) {
			t.Fatalf("%v (%#08x) is rounded to %v and %v, want %v", v, math.Float32bits(v), got[i], split[i], want)
		}
		if v-v == 0 && split[i]+rest[i] != v {
			t.Fatalf("%v is %v and %v", v, split[i], rest[i])
		}
	}
}

func BenchmarkRoundBF16(b *testing.B) {
	x, rest := make([]float32, 128), make([]float32, 128)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = rng.Float32()
	}
	dst := make([]float32, len(x))
	b.Run("round", func(b *testing.B) {
		for b.Loop() {
			RoundBF16(dst, x)
		}
	})
	b.Run("split", func(b *testing.B) {
		for b.Loop() {
			copy(dst, x)
			SplitBF16(dst, rest)
		}
	})
}
