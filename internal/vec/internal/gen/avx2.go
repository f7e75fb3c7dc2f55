package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// avx2 writes for amd64 with AVX2 and FMA, with the help of avo. Its values are
// a VecVirtual, or a Mem that an instruction may take as its last source.
type avx2 struct{}

func (avx2) text(name, sig, doc string) {
	TEXT(name, NOSPLIT, sig)
	Doc(strings.Split(name+" "+doc, "\n")...)
	Pragma("noescape")
}

func (avx2) ret() {
	VZEROUPPER()
	RET()
}

func (avx2) argument(param string) value {
	y := YMM()
	VBROADCASTSS(address(param), y)
	return y
}

// A spared is the address of a parameter.
type spared struct{ Mem }

func (avx2) spare(param string) value { return spared{address(param)} }

func address(param string) Mem {
	c, err := Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	return c.Addr
}

// eights are the constants of the file so far, by name.
var eights = map[string]Mem{}

// constant is 32 bytes of one word, to be a memory operand of a whole register.
func (avx2) constant(name string, word uint32) value {
	if _, ok := eights[name]; !ok {
		eights[name] = GLOBL(name, RODATA|NOPTR)
		for i := range 8 {
			DATA(4*i, U32(word))
		}
	}
	return eights[name]
}

func (avx2) load(x value) value { return inRegister(x) }

func inRegister(x value) VecVirtual {
	if y, ok := x.(VecVirtual); ok {
		return y
	}
	y := YMM()
	if p, ok := x.(spared); ok {
		VBROADCASTSS(p.Mem, y)
	} else {
		VMOVUPS(x.(Mem), y)
	}
	return y
}

// last is x as the last source of an instruction, which may lie in memory.
func last(x value) Op {
	if m, ok := x.(Mem); ok {
		return m
	}
	return inRegister(x)
}

// op is x ∘ y.
func op(f func(...Op), x, y value) value {
	a, b, r := inRegister(x), last(y), YMM()
	f(b, a, r)
	return r
}

func (avx2) add(x, y value) value    { return op(VADDPS, x, y) }
func (avx2) sub(x, y value) value    { return op(VSUBPS, x, y) }
func (avx2) mul(x, y value) value    { return op(VMULPS, x, y) }
func (avx2) div(x, y value) value    { return op(VDIVPS, x, y) }
func (avx2) addInt(x, y value) value { return op(VPADDD, x, y) }
func (avx2) subInt(x, y value) value { return op(VPSUBD, x, y) }
func (avx2) or(x, y value) value     { return op(VORPS, x, y) }

func (avx2) sqrt(x value) value {
	r := YMM()
	VSQRTPS(last(x), r)
	return r
}

// Of two numbers of which one is a NaN, or which both are zero, the minimum and
// the maximum are the last source.
func (avx2) atMost(x, limit value) value  { return op(VMINPS, limit, x) }
func (avx2) atLeast(x, limit value) value { return op(VMAXPS, limit, x) }

func (avx2) half(x value) value {
	r := YMM()
	VPSRAD(Imm(1), inRegister(x), r)
	return r
}

func (avx2) exponent(x value) value {
	r := YMM()
	VPSLLD(Imm(23), inRegister(x), r)
	return r
}

func (avx2) bySign(x, neg, pos value) value {
	r := YMM()
	VBLENDVPS(inRegister(x), last(neg), inRegister(pos), r)
	return r
}

func (avx2) flag() value {
	seen := YMM()
	VXORPS(seen, seen, seen)
	return seen
}

func (avx2) raise(flag, x value) {
	zero, ne := YMM(), YMM()
	VXORPS(zero, zero, zero)
	VCMPPS(Imm(4), zero, inRegister(x), ne) // not equal or unordered
	VORPS(ne, flag.(VecVirtual), flag.(VecVirtual))
}

func (avx2) returnFlag(flag value) {
	out, seen := GP8(), flag.(VecVirtual)
	VPTEST(seen, seen)
	SETNE(out)
	Store(out, ReturnIndex(0))
}

// A vector is a slice argument under way: its base, and the index register that
// all vectors of a kernel share.
type vector struct{ base, index GPVirtual }

// at is the address of the 8 floats that lie 8·u floats past the index.
func (v vector) at(u int) Mem { return Mem{Base: v.base, Index: v.index, Scale: 4, Disp: 32 * u} }

func (m avx2) sweep(ptrs []string, unroll int, body func(v func(name string) value) []result) {
	m.walk(ptrs, unroll, func(v func(string) value) ([]result, value) { return body(v), nil })
}

func (m avx2) sum(ptrs []string, unroll int, body func(v func(name string) value) ([]result, value)) {
	sums, i, last, end := m.walk(ptrs, unroll, body)
	VANDPS(m.tail(i, last), end.(VecVirtual), end.(VecVirtual))
	VADDPS(end.(VecVirtual), sums[0], sums[0])
	m.fold(VADDPS, VADDSS, sums...)
}

// walk emits the loop of sweep, and adds up what body gives besides, a sum for each
// vector of a turn. The last vector's is end, which is not added.
func (avx2) walk(ptrs []string, unroll int, body func(v func(name string) value) ([]result, value)) (sums []VecVirtual, i, last GPVirtual, end value) {
	i, last = GP64(), GP64()
	v, tail := map[string]vector{}, map[string]vector{}
	for _, p := range ptrs {
		base := Load(Param(p), GP64()).(GPVirtual)
		v[p], tail[p] = vector{base, i}, vector{base, last}
	}
	compute := func(v map[string]vector, u int) ([]result, value) {
		return body(func(name string) value { return v[name].at(u) })
	}
	store := func(v map[string]vector, u int, results []result) {
		for _, r := range results {
			VMOVUPS(r.x.(VecVirtual), v[r.to].at(u))
		}
	}
	Load(Param("n"), last)
	SUBQ(Imm(8), last)
	ends, end := compute(tail, 0)
	if end != nil {
		for range unroll {
			s := YMM()
			VXORPS(s, s, s)
			sums = append(sums, s)
		}
	}
	add := func(u int, x value) {
		if x != nil {
			VADDPS(x.(VecVirtual), sums[u], sums[u])
		}
	}
	XORQ(i, i)
	if unroll > 1 {
		wide := GP64()
		LEAQ(Mem{Base: last, Disp: -8 * (unroll - 1)}, wide)
		loop("wide", i, wide, 8*unroll, func() {
			r := make([][]result, unroll)
			for u := range r {
				var x value
				r[u], x = compute(v, u)
				add(u, x)
			}
			for u := range r {
				store(v, u, r[u])
			}
		})
	}
	loop("narrow", i, last, 8, func() {
		r, x := compute(v, 0)
		store(v, 0, r)
		add(0, x)
	})
	store(tail, 0, ends)
	return sums, i, last, end
}

func (avx2) running(dst string, ptrs []string, body func(v func(name string) value) value) {
	i, n, sums := GP64(), GP64(), YMM()
	v := map[string]vector{}
	for _, p := range append([]string{dst}, ptrs...) {
		v[p] = vector{Load(Param(p), GP64()).(GPVirtual), i}
	}
	Load(Param("n"), n)
	VXORPS(sums, sums, sums)
	XORQ(i, i)
	loop("eight", i, n, 8, func() {
		VADDPS(last(body(func(name string) value { return v[name].at(0) })), sums, sums)
		VMOVUPS(sums, v[dst].at(0))
	})
}

// loop runs while i < end (signed), raising i by step.
func loop(name string, i, end GPVirtual, step int, body func()) {
	JMP(LabelRef(name + "Test"))
	Label(name)
	body()
	ADDQ(Imm(uint64(step)), i)
	Label(name + "Test")
	CMPQ(i, end)
	JLT(LabelRef(name))
}
