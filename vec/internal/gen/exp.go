package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// eights are the constants of the file so far, by name.
var eights = map[string]Mem{}

// eight is 32 bytes of one word, to be a memory operand of a whole register.
func eight(name string, word uint32) Mem {
	if _, ok := eights[name]; !ok {
		eights[name] = GLOBL(name, RODATA|NOPTR)
		for i := range 8 {
			DATA(4*i, U32(word))
		}
	}
	return eights[name]
}

func float(name string, x float32) Mem { return eight(name, math.Float32bits(x)) }

// exp emits exp1 of plainexp.go, operation by operation.
func exp(x VecVirtual) VecVirtual {
	n, r, q, k, h := YMM(), YMM(), YMM(), YMM(), YMM()
	VMOVUPS(float("expMax", 89), n)
	VMINPS(x, n, r) // a NaN stays
	VMOVUPS(float("expMin", -104), n)
	VMAXPS(r, n, r)
	VMULPS(float("log2E", 1.4426950408889634), r, n)
	VADDPS(float("roundBias", 0x1.8p23), n, n)
	VPSUBD(eight("roundBiasBits", 0x4b400000), n, k)
	VSUBPS(float("roundBias", 0x1.8p23), n, n)
	VMULPS(float("ln2Hi", 0.693359375), n, q)
	VSUBPS(q, r, r)
	VMULPS(float("ln2Lo", -2.12194440054690583e-4), n, q)
	VSUBPS(q, r, r)
	VMULPS(float("expQ5", 0.00019790299), r, q)
	VADDPS(float("expQ4", 0.0013944703), q, q)
	for _, c := range []struct {
		name string
		x    float32
	}{{"expQ3", 0.008333498}, {"expQ2", 0.041666295}, {"expQ1", 0.16666666}, {"expQ0", 0.5}} {
		VMULPS(r, q, q)
		VADDPS(float(c.name, c.x), q, q)
	}
	VMULPS(r, r, n)
	VMULPS(q, n, q)
	VADDPS(r, q, q)
	VADDPS(float("ones", 1), q, q)
	VPSRAD(Imm(1), k, h)
	VPSUBD(h, k, k)
	for _, e := range []VecVirtual{h, k} {
		VPADDD(eight("exponentBias", 127), e, e)
		VPSLLD(Imm(23), e, e)
		VMULPS(e, q, q)
	}
	return q
}

func exponentials() {
	text("expAVX2", "func(dst, x *float32, n int)", "is Exp for n ≥ 8.")
	sweep([]string{"dst", "x"}, 2, func(v map[string]vector, u int) []VecVirtual {
		return []VecVirtual{exp(v["x"].load(u))}
	}, one("dst"))

	text("sigmoidAVX2", "func(dst, x *float32, n int)", "is Sigmoid for n ≥ 8.")
	sweep([]string{"dst", "x"}, 2, func(v map[string]vector, u int) []VecVirtual {
		x, neg := v["x"].load(u), YMM()
		VORPS(eight("signBits", 1<<31), x, neg)
		e := exp(neg)
		num, den := YMM(), YMM()
		VMOVUPS(float("ones", 1), num)
		VADDPS(num, e, den)
		VBLENDVPS(x, e, num, num) // e where x has its sign bit set
		VDIVPS(den, num, num)
		return []VecVirtual{num}
	}, one("dst"))
}
