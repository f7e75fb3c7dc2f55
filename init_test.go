package godwit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
)

// A row's first value must never change: a node that joins later, and a run that
// goes on from a checkpoint, make the rows that others made before.
func TestFirstValuesAreDrawsOfTheRowsOwnGenerator(t *testing.T) {
	for _, k := range []godwit.Key{0, 1, 17, 1<<40 + 3} {
		for seed := range uint64(3) {
			draws := func() *rand.Rand {
				return rand.New(rand.NewPCG(seed, uint64(k)*0x9e3779b97f4a7c15+0x632be59bd9b4e019))
			}
			row := make([]float32, 300)
			godwit.Uniform{Lo: -2, Hi: 3}.Init(row, seed, k)
			r := draws()
			for i, x := range row {
				if want := -2 + float32(5*r.Float32()); x != want {
					t.Fatalf("uniform, seed %d, key %d: float %d is %v, want %v", seed, k, i, x, want)
				}
			}
			godwit.Normal{Mean: 1, Std: 0.5}.Init(row, seed, k)
			r = draws()
			for i, x := range row {
				if want := 1 + float32(0.5*float32(r.NormFloat64())); x != want {
					t.Fatalf("normal, seed %d, key %d: float %d is %v, want %v", seed, k, i, x, want)
				}
			}
		}
	}
}

// Nodes of different processors make the same rows. The factors are no powers of two, so
// that a product that is not rounded before the sum would show.
func TestFirstValuesHaveTheSameBitsOnEveryProcessor(t *testing.T) {
	for _, in := range []struct {
		of   godwit.Init
		want uint64
	}{{godwit.Uniform{Lo: -0.3, Hi: 0.7}, 0x78e3a38705b7b86b}, {godwit.Normal{Mean: 0.1, Std: 0.3}, 0x2a06349a2e56e3d6}} {
		row, sum := make([]float32, 300), uint64(0)
		in.of.Init(row, 1, 2)
		for _, x := range row {
			sum = godwit.Hash64(sum ^ uint64(math.Float32bits(x)))
		}
		if sum != in.want {
			t.Errorf("%s: the hash of the bits is %#x, want %#x", in.of.Name(), sum, in.want)
		}
	}
}

func TestInitializersAllocateNothing(t *testing.T) {
	row := make([]float32, 4)
	for _, in := range []godwit.Init{godwit.Zero{}, godwit.Uniform{Hi: 1}, godwit.Normal{Std: 1}} {
		if n := testing.AllocsPerRun(1000, func() { in.Init(row, 1, 2) }); n >= 1 {
			t.Errorf("%s allocates %v times a row", in.Name(), n)
		}
	}
}

func BenchmarkInit(b *testing.B) {
	for _, dim := range []int{4, 100} {
		row := make([]float32, dim)
		for _, in := range []godwit.Init{godwit.Zero{}, godwit.Uniform{Hi: 1}, godwit.Normal{Std: 1}} {
			b.Run(fmt.Sprintf("%s/%d floats", in.Name(), dim), func(b *testing.B) {
				b.ReportAllocs()
				for k := range b.N {
					in.Init(row, 1, godwit.Key(k))
				}
			})
		}
	}
}
