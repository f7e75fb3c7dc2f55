package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// one stores the only result of a kernel in the vector called name.
func one(name string) func(map[string]vector, int, []VecVirtual) {
	return func(v map[string]vector, u int, r []VecVirtual) { VMOVUPS(r[0], v[name].at(u)) }
}

func elementwise() {
	text("addAVX2", "func(dst, x *float32, n int)", "is Add for n ≥ 8.")
	sweep([]string{"dst", "x"}, 4, func(v map[string]vector, u int) []VecVirtual {
		y := v["dst"].load(u)
		VADDPS(v["x"].at(u), y, y)
		return []VecVirtual{y}
	}, one("dst"))

	text("subAVX2", "func(dst, x *float32, n int)", "is Sub for n ≥ 8.")
	sweep([]string{"dst", "x"}, 4, func(v map[string]vector, u int) []VecVirtual {
		y := v["dst"].load(u)
		VSUBPS(v["x"].at(u), y, y)
		return []VecVirtual{y}
	}, one("dst"))

	text("axpyAVX2", "func(dst *float32, a float32, x *float32, n int)", "is AXPY for n ≥ 8.")
	a := broadcast("a")
	sweep([]string{"dst", "x"}, 4, func(v map[string]vector, u int) []VecVirtual {
		y := YMM()
		VMULPS(v["x"].at(u), a, y)
		VADDPS(v["dst"].at(u), y, y)
		return []VecVirtual{y}
	}, one("dst"))

	text("scaleAVX2", "func(dst *float32, a float32, n int)", "is Scale for n ≥ 8.")
	b := broadcast("a")
	sweep([]string{"dst"}, 4, func(v map[string]vector, u int) []VecVirtual {
		y := YMM()
		VMULPS(v["dst"].at(u), b, y)
		return []VecVirtual{y}
	}, one("dst"))

	text("mulAVX2", "func(dst, a, b *float32, n int)", "is Mul for n ≥ 8.")
	sweep([]string{"dst", "a", "b"}, 4, func(v map[string]vector, u int) []VecVirtual {
		y := v["a"].load(u)
		VMULPS(v["b"].at(u), y, y)
		return []VecVirtual{y}
	}, one("dst"))

	text("addMulAVX2", "func(dst, a, b *float32, n int)", "is AddMul for n ≥ 8.")
	sweep([]string{"dst", "a", "b"}, 4, func(v map[string]vector, u int) []VecVirtual {
		y := v["a"].load(u)
		VMULPS(v["b"].at(u), y, y)
		VADDPS(v["dst"].at(u), y, y)
		return []VecVirtual{y}
	}, one("dst"))

	delta()
	adagrad()
	roots()
	adam()
}

// delta ORs the comparisons of all differences with zero. The last 8 elements
// take part more than once, with the same outcome.
func delta() {
	text("deltaAVX2", "func(dst, val, sub *float32, n int) bool", "is Delta for n ≥ 8.")
	zero, seen := YMM(), YMM()
	VXORPS(zero, zero, zero)
	VXORPS(seen, seen, seen)
	out := GP8()
	i, last := GP64(), GP64()
	names := []string{"dst", "val", "sub"}
	v, tail := map[string]vector{}, map[string]vector{}
	for _, p := range names {
		base := Load(Param(p), GP64()).(GPVirtual)
		v[p], tail[p] = vector{base, i}, vector{base, last}
	}
	body := func(v map[string]vector) (val, diff VecVirtual) {
		val = v["val"].load(0)
		diff = YMM()
		VSUBPS(v["sub"].at(0), val, diff)
		ne := YMM()
		VCMPPS(Imm(4), zero, diff, ne) // not equal or unordered
		VORPS(ne, seen, seen)
		return val, diff
	}
	Load(Param("n"), last)
	SUBQ(Imm(8), last)
	val, diff := body(tail)
	XORQ(i, i)
	loop("narrow", i, last, 8, func() {
		val, diff := body(v)
		VMOVUPS(diff, v["dst"].at(0))
		VMOVUPS(val, v["sub"].at(0))
	})
	VMOVUPS(diff, tail["dst"].at(0))
	VMOVUPS(val, tail["sub"].at(0))
	VPTEST(seen, seen)
	SETNE(out)
	VZEROUPPER()
	Store(out, ReturnIndex(0))
	RET()
}

func adagrad() {
	text("adaGradAVX2", "func(value, acc, grad *float32, n int, lr, eps float32)", "is AdaGrad for n ≥ 8.")
	lr, eps := broadcast("lr"), broadcast("eps")
	sweep([]string{"value", "acc", "grad"}, 2, func(v map[string]vector, u int) []VecVirtual {
		g, s, d := v["grad"].load(u), YMM(), YMM()
		VMULPS(g, g, s)
		VADDPS(v["acc"].at(u), s, s)
		VSQRTPS(s, d)
		VADDPS(eps, d, d)
		VMULPS(lr, g, g)
		VDIVPS(d, g, g)
		y := v["value"].load(u)
		VSUBPS(g, y, y)
		return []VecVirtual{s, y}
	}, func(v map[string]vector, u int, r []VecVirtual) {
		VMOVUPS(r[0], v["acc"].at(u))
		VMOVUPS(r[1], v["value"].at(u))
	})
}

func roots() {
	text("mulRootAVX2", "func(x, acc *float32, n int, eps float32)", "is MulRoot for n ≥ 8.")
	eps := broadcast("eps")
	sweep([]string{"x", "acc"}, 2, func(v map[string]vector, u int) []VecVirtual {
		d := YMM()
		VSQRTPS(v["acc"].at(u), d)
		VADDPS(eps, d, d)
		VMULPS(v["x"].at(u), d, d)
		return []VecVirtual{d}
	}, one("x"))

	text("addDivRootAVX2", "func(dst, acc, x *float32, n int, eps float32)", "is AddDivRoot for n ≥ 8.")
	eps = broadcast("eps")
	sweep([]string{"dst", "acc", "x"}, 2, func(v map[string]vector, u int) []VecVirtual {
		x, d := v["x"].load(u), YMM()
		VSQRTPS(v["acc"].at(u), d)
		VADDPS(eps, d, d)
		VDIVPS(d, x, x)
		VADDPS(v["dst"].at(u), x, x)
		return []VecVirtual{x}
	}, one("dst"))
}

func adam() {
	text("adamAVX2", "func(value, m, v, grad *float32, n int, lr, b1, b2, eps, c1, c2, limit float32)", "is Adam for n ≥ 8.")
	lr, eps := broadcast("lr"), broadcast("eps")
	limit := broadcast("limit")
	zero, neg := YMM(), YMM()
	VXORPS(zero, zero, zero)
	VSUBPS(limit, zero, neg)
	b1, b2 := broadcast("b1"), broadcast("b2")
	a1, a2 := YMM(), YMM()
	VMOVUPS(float("ones", 1), a2)
	VSUBPS(b1, a2, a1)
	VSUBPS(b2, a2, a2)
	// The corrections are read where they are used: the registers are full.
	c1, c2 := argument("c1"), argument("c2")
	sweep([]string{"value", "m", "v", "grad"}, 1, func(v map[string]vector, u int) []VecVirtual {
		g, m, w, t, r := v["grad"].load(u), YMM(), YMM(), YMM(), YMM()
		VMULPS(v["m"].at(u), b1, m)
		VMULPS(a1, g, t)
		VADDPS(t, m, m)
		VMAXPS(v["v"].at(u), zero, w) // a NaN and -0 of v stay
		VMULPS(b2, w, w)
		VMULPS(g, g, t)
		VMULPS(a2, t, t)
		VADDPS(t, w, w)
		VBROADCASTSS(c1, r)
		VMULPS(m, r, r)
		VBROADCASTSS(c2, t)
		VMULPS(w, t, t)
		VSQRTPS(t, t)
		VADDPS(eps, t, t)
		VDIVPS(t, r, r)
		VMINPS(r, limit, r) // a NaN stays
		VMAXPS(r, neg, r)
		VMULPS(lr, r, r)
		y := v["value"].load(u)
		VSUBPS(r, y, y)
		return []VecVirtual{m, w, y}
	}, func(v map[string]vector, u int, r []VecVirtual) {
		VMOVUPS(r[0], v["m"].at(u))
		VMOVUPS(r[1], v["v"].at(u))
		VMOVUPS(r[2], v["value"].at(u))
	})
}

func argument(name string) Mem {
	c, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return c.Addr
}
