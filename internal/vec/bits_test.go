package vec

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
)

// bits are hashes of what the elementwise functions give for the same numbers.
// They are constants so that a run on one processor checks what runs on others
// gave. A change of them is a change of what rows become.
var bits = map[string]uint64{
	"AXPY":          0x120473325de85dd9,
	"AdaGrad":       0x162c45d5399416c8,
	"Adam":          0x8ca622bd3b4868ad,
	"Add":           0xcbc0aa6e2cbb0fc0,
	"AddDivRoot":    0x124b1aff146053ce,
	"AddMul":        0xb66f7479c25e007e,
	"AddMulComplex": 0x17b2391b9b6dcef0,
	"AddMulConj":    0x2792e807cc87a24a,
	"AddMulModulus": 0x5d0d469c94944940,
	"Delta":         0x08f53d241b2e74cc,
	"Exp":           0xd3d20108088d726f,
	"ExpSum":        0x9298d206a63257b6,
	"Mul":           0x6bb8e44b70696c98,
	"MulComplex":    0xa24fe71a7ff922bb,
	"MulConj":       0xbcb30193e2b5af1b,
	"MulRoot":       0x1d5e2a0d63faa86d,
	"PairStep":      0x888b812697045a27,
	"Scale":         0x25381cd5b0987115,
	"Sigmoid":       0x26f6501b050ffd9e,
	"Sub":           0x5f963a8d062d9c6c,
	"TopicOdds":     0x46aa2b902686462d,
}

func TestElementwiseFunctionsGiveTheSameBitsOnEveryProcessor(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		for _, k := range exact {
			for version, f := range map[string]func([][]float32, float32) any{"kernel": k.fast, "plain loop": k.plain} {
				if got := hashOf(f, k.vectors); got != bits[k.name] {
					t.Errorf("%s: the hash of what the %s gives is %#016x, want %#016x", k.name, version, got, bits[k.name])
				}
			}
		}
	})
}

// hashOf runs f on vectors that are the same everywhere, so they are drawn
// without the functions of package math.
func hashOf(f func([][]float32, float32) any, vectors int) uint64 {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func() float32 {
		if r.IntN(4) == 0 {
			return math.Float32frombits(r.Uint32())
		}
		return float32(int32(r.Uint32())) * 0x1p-29
	}
	h := fnv.New64a()
	for _, n := range []int{2, 4, 6, 8, 10, 34, 100, 330} {
		v := make([][]float32, vectors)
		for i := range v {
			v[i] = make([]float32, n)
			for j := range v[i] {
				v[i][j] = draw()
			}
		}
		f(v, draw())
		for _, x := range v {
			for _, y := range x {
				b := math.Float32bits(y)
				if y != y {
					b = 0x7fc00000 // the bits of a NaN are not determined
				}
				h.Write(binary.LittleEndian.AppendUint32(nil, b))
			}
		}
	}
	return h.Sum64()
}
