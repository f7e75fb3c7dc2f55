package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func (m *avx) reductions() {
	m.dot()
	m.largest()
}

// tailMask is 8 words of zeros, then 8 of ones.
func tailMask() Mem {
	if _, ok := eights["tailMask"]; !ok {
		eights["tailMask"] = GLOBL("tailMask", RODATA|NOPTR)
		for i := range 16 {
			DATA(4*i, U32(-uint32(i/8)))
		}
	}
	return eights["tailMask"]
}

// tail is the mask of the last 8 elements, which begin at last, without those before
// i: 0 … 7 of them.
func (avx) tail(i, last GPVirtual) VecVirtual {
	done, masks, mask := GP64(), GP64(), YMM()
	MOVQ(i, done)
	SUBQ(last, done)
	LEAQ(tailMask(), masks)
	NEGQ(done)
	VMOVUPS(Mem{Base: masks, Index: done, Scale: 4, Disp: 32}, mask)
	return mask
}

// wideTail is tail for 16 elements, as a mask of AVX-512.
func (avx) wideTail(i, last GPVirtual) Register {
	bits, mask := GP64(), K()
	MOVQ(i, RCX)
	SUBQ(last, RCX)
	MOVQ(I32(0xffff), bits)
	SHLQ(CL, bits)
	KMOVW(bits.As32(), mask)
	return mask
}

// fold brings the lanes of all registers together, by an operation on registers
// and on single floats, and makes that the kernel's result.
func (m avx) fold(op, op1 func(...Op), acc ...VecVirtual) {
	for n := len(acc) / 2; n > 0; n /= 2 {
		for i := range n {
			op(acc[2*i+1], acc[2*i], acc[i])
		}
	}
	if m.wide() {
		half := YMM()
		VEXTRACTF64X4(Imm(1), acc[0], half)
		acc[0] = acc[0].AsY().(VecVirtual)
		op(half, acc[0], acc[0])
	}
	lo, hi := acc[0].AsX(), XMM()
	VEXTRACTF128(Imm(1), acc[0], hi)
	op(hi, lo, lo)
	VPERMILPS(Imm(0x4e), lo, hi) // the upper two
	op(hi, lo, lo)
	VMOVSHDUP(lo, hi)
	op1(hi, lo, lo)
	VZEROUPPER()
	Store(lo, ReturnIndex(0))
	RET()
}

// largest emits the maximum. The last 8 elements are taken first, as what is had twice
// does no harm.
func (m *avx) largest() {
	m.text("fastMax", "func(x *float32, n int) float32", "is Max for n ≥ lanes.")
	i, last, wide := GP64(), GP64(), GP64()
	x := vector{Load(Param("x"), GP64()).(GPVirtual), i, 32}
	Load(Param("n"), last)
	SUBQ(Imm(8), last)
	acc := []VecVirtual{YMM(), YMM(), YMM(), YMM()}
	for _, s := range acc {
		VMOVUPS(Mem{Base: x.base, Index: last, Scale: 4}, s)
	}
	XORQ(i, i)
	LEAQ(Mem{Base: last, Disp: -8 * (len(acc) - 1)}, wide)
	loop("wide", i, wide, 8*len(acc), func() {
		for u, s := range acc {
			VMAXPS(x.at(u), s, s)
		}
	})
	loop("narrow", i, last, 8, func() { VMAXPS(x.at(0), acc[0], acc[0]) })
	m.fold(VMAXPS, VMAXSS, acc...)
}

// dot emits the dot product. Its last up to 8 products come from the
// last 8 elements, of which those that the loop has had are masked out of both
// factors (an infinity times a masked zero would be NaN).
func (machine *avx) dot() {
	machine.text("fastDot", "func(a, b *float32, n int) float32", "is Dot for n ≥ lanes.")
	i, last, wide := GP64(), GP64(), GP64()
	a := vector{Load(Param("a"), GP64()).(GPVirtual), i, 32}
	b := vector{Load(Param("b"), GP64()).(GPVirtual), i, 32}
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
			VFMADD231PS(b.at(u), machine.inRegister(a.at(u)), s)
		}
	})
	loop("narrow", i, last, 8, func() { VFMADD231PS(b.at(0), machine.inRegister(a.at(0)), acc[0]) })
	m, x, y := machine.tail(i, last), YMM(), YMM()
	VANDPS(Mem{Base: a.base, Index: last, Scale: 4}, m, x)
	VANDPS(Mem{Base: b.base, Index: last, Scale: 4}, m, y)
	VFMADD231PS(y, x, acc[1])
	machine.fold(VADDPS, VADDSS, acc...)
}
