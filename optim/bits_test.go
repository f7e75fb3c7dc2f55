package optim

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
)

// Nodes of different kinds that apply the same pushes to a row must get the same
// row: the hashes are what all must give. RowAdaGrad is not among the rules, as
// the order of its sum depends on the processor.
func TestRulesGiveTheSameBitsOnEveryProcessor(t *testing.T) {
	for _, c := range []struct {
		rule godwit.Rule
		want uint64
	}{
		{SGD{LR: 0.3}, 0xa8a9fe7de2d7a445},
		{Momentum{LR: 0.3}, 0x54093aacacbf8db4},
		{AdaGrad{LR: 0.3}, 0x85bbacb86fccf83f},
		{Adam{LR: 0.3}, 0x560400ccf545636c},
		{ProximalSGD{LR: 0.3, L1: 0.07, L2: 0.03}, 0x5a424300ff64a309},
		{ProximalAdaGrad{LR: 0.3, L1: 0.07, L2: 0.03}, 0xbfe579ac6f6fa95b},
		{FTRL{LR: 0.3, L1: 0.07, L2: 0.03}, 0x791fe118eecbbc75},
		{Counter{}, 0x53e2f271fa13cadd},
	} {
		if got := hashOfPushes(c.rule); got != c.want {
			t.Errorf("%s: the hash of the row is %#016x, want %#016x", c.rule.Name(), got, c.want)
		}
	}
}

// hashOfPushes draws without the functions of package math, which may differ.
func hashOfPushes(r godwit.Rule) uint64 {
	rnd := rand.New(rand.NewPCG(1, 2))
	draw := func() float32 { return float32(int32(rnd.Uint32())) * 0x1p-31 }
	x := newRow(r, make([]float32, 26)...)
	push := make([]float32, len(x.value))
	for range 200 {
		for i := range push {
			push[i] = draw()
		}
		r.Apply(x.value, x.state, push)
	}
	h := fnv.New64a()
	for _, v := range [][]float32{x.pull(r), x.value, x.state} {
		for _, f := range v {
			h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)))
		}
	}
	return h.Sum64()
}
