package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/reg"
)

// complexProducts emits the four products of complex vectors in split layout.
// The kernels get separate pointers to real and imaginary parts.
func complexProducts() {
	for _, k := range []struct {
		name, doc string
		conj, add bool
	}{
		{"mulComplexAVX2", "MulComplex", false, false},
		{"addMulComplexAVX2", "AddMulComplex", false, true},
		{"mulConjAVX2", "MulConj", true, false},
		{"addMulConjAVX2", "AddMulConj", true, true},
	} {
		text(k.name, "func(dr, di, ar, ai, br, bi *float32, n int)", "is "+k.doc+" for n ≥ 8 complex numbers.")
		sweep([]string{"dr", "di", "ar", "ai", "br", "bi"}, 1, func(v map[string]vector, u int) []VecVirtual {
			ar, ai := v["ar"].load(u), v["ai"].load(u)
			br, bi := v["br"].load(u), v["bi"].load(u)
			re, im, t := YMM(), YMM(), YMM()
			VMULPS(ar, br, re)
			VMULPS(ai, bi, t)
			if k.conj {
				VADDPS(t, re, re)
			} else {
				VSUBPS(t, re, re)
			}
			VMULPS(ar, bi, im)
			VMULPS(ai, br, t)
			if k.conj {
				VSUBPS(t, im, im)
			} else {
				VADDPS(t, im, im)
			}
			if k.add {
				VADDPS(v["dr"].at(u), re, re)
				VADDPS(v["di"].at(u), im, im)
			}
			return []VecVirtual{re, im}
		}, func(v map[string]vector, u int, r []VecVirtual) {
			VMOVUPS(r[0], v["dr"].at(u))
			VMOVUPS(r[1], v["di"].at(u))
		})
	}
}
