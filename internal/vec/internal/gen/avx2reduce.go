package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// reductions emits the dot product. Its last up to 8 products come from the
// last 8 elements, of which those that the loop has had are masked out of both
// factors (an infinity times a masked zero would be NaN).
func (machine avx2) reductions() {
	mask := GLOBL("tailMask", RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, U32(0))
	}
	for i := range 8 {
		DATA(4*(8+i), U32(0xffffffff))
	}

	machine.text("fastDot", "func(a, b *float32, n int) float32", "is Dot for n ≥ lanes.")
	i, last, wide := GP64(), GP64(), GP64()
	a := vector{Load(Param("a"), GP64()).(GPVirtual), i}
	b := vector{Load(Param("b"), GP64()).(GPVirtual), i}
	Load(Param("n"), last)
	SUBQ(Imm(8), last)
	acc := []VecVirtual{YMM(), YMM(), YMM(), YMM()}
	for _, s := range acc {
		VXORPS(s, s, s)
	}
	XORQ(i, i)
	LEAQ(Mem{Base: last, Disp: -8 * (len(acc) - 1)}, wide)
	loop("wide", i, wide, 8*len(acc), func() {
		for u, s := range acc {
			VFMADD231PS(b.at(u), inRegister(a.at(u)), s)
		}
	})
	loop("narrow", i, last, 8, func() { VFMADD231PS(b.at(0), inRegister(a.at(0)), acc[0]) })
	// i - last elements at the start of the last 8 are done: 0 … 7 of them.
	done, masks := GP64(), GP64()
	MOVQ(i, done)
	SUBQ(last, done)
	LEAQ(mask, masks)
	NEGQ(done)
	m, x, y := YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: masks, Index: done, Scale: 4, Disp: 32}, m)
	VANDPS(Mem{Base: a.base, Index: last, Scale: 4}, m, x)
	VANDPS(Mem{Base: b.base, Index: last, Scale: 4}, m, y)
	VFMADD231PS(y, x, acc[1])

	VADDPS(acc[1], acc[0], acc[0])
	VADDPS(acc[3], acc[2], acc[2])
	VADDPS(acc[2], acc[0], acc[0])
	lo, hi := acc[0].AsX(), XMM()
	VEXTRACTF128(Imm(1), acc[0], hi)
	VADDPS(hi, lo, lo)
	VPERMILPS(Imm(0x4e), lo, hi) // the upper two
	VADDPS(hi, lo, lo)
	VMOVSHDUP(lo, hi)
	VADDSS(hi, lo, lo)
	VZEROUPPER()
	Store(lo, ReturnIndex(0))
	RET()
}
