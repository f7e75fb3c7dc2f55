package optim

import (
	"fmt"
	"testing"

	"github.com/godwit-ps/godwit"
)

func BenchmarkApply(b *testing.B) {
	for _, r := range []godwit.Rule{godwit.Add{}, SGD{LR: 1e-9}, AdaGrad{LR: 1e-9}, RowAdaGrad{LR: 1e-9}, Adam{LR: 1e-9}, FTRL{LR: 1e-9, L1: 1}} {
		for _, dim := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("%T/%d", r, dim), func(b *testing.B) {
				x := newRow(r, make([]float32, dim)...)
				push := make([]float32, dim)
				for i := range push {
					push[i] = 1
				}
				for b.Loop() {
					r.Apply(x.value, x.state, push)
				}
			})
		}
	}
}

func BenchmarkQuery(b *testing.B) {
	r := FTRL{LR: 0.1, L1: 1}
	for _, dim := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("%T/%d", r, dim), func(b *testing.B) {
			x, dst := newRow(r, make([]float32, dim)...), make([]float32, dim)
			for i := range x.value {
				x.value[i], x.state[i] = float32(i)-4, float32(i)
			}
			for b.Loop() {
				r.Query(dst, x.value, x.state)
			}
		})
	}
}
