package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// avx writes for amd64 with the help of avo: with AVX2 and FMA, or with AVX-512. Its
// values are a VecVirtual, or a Mem that an instruction may take as its last source.
type avx struct {
	bytes int                   // of a register
	kept  map[string]VecVirtual // constants of the kernel, with AVX-512
}

// With AVX-512 there are the kernels only that are faster by it.
func avx2() *avx   { return &avx{bytes: 32} }
func avx512() *avx { return &avx{bytes: 64} }

func (m avx) wide() bool { return m.bytes == 64 }
func (m avx) lanes() int { return m.bytes / 4 }

func (m avx) vector() VecVirtual {
	if m.wide() {
		return ZMM()
	}
	return YMM()
}

// name is that of a kernel, which has another one with AVX-512.
func (m avx) name(fast string) string {
	if m.wide() {
		return "wide" + strings.TrimPrefix(fast, "fast")
	}
	return fast
}

func (m *avx) text(name, sig, doc string) {
	m.kept = map[string]VecVirtual{}
	name = m.name(name)
	if m.wide() {
		doc = strings.Replace(doc, "lanes", "wideLanes", 1) + " It needs AVX-512."
	}
	TEXT(name, NOSPLIT, sig)
	Doc(strings.Split(name+" "+doc, "\n")...)
	Pragma("noescape")
}

func (avx) ret() {
	VZEROUPPER()
	RET()
}

func (m avx) argument(param string) value {
	y := m.vector()
	VBROADCASTSS(address(param), y)
	return y
}

// A spared is the address of a parameter.
type spared struct{ Mem }

func (avx) spare(param string) value { return spared{address(param)} }

func address(param string) Mem {
	c, err := Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	return c.Addr
}

// eights are the constants of the file so far, by name.
var eights = map[string]Mem{}

// constant is 32 bytes of one word, to be a memory operand of a whole register. With
// AVX-512 there are registers enough to keep all, from where a kernel first needs them,
// which is before its loops.
func (m avx) constant(name string, word uint32) value {
	if m.wide() {
		if _, ok := m.kept[name]; !ok {
			m.kept[name] = ZMM()
			VBROADCASTSS(avx2().constant(name, word).(Mem), m.kept[name])
		}
		return m.kept[name]
	}
	if _, ok := eights[name]; !ok {
		eights[name] = GLOBL(name, RODATA|NOPTR)
		for i := range 8 {
			DATA(4*i, U32(word))
		}
	}
	return eights[name]
}

func (m avx) load(x value) value { return m.inRegister(x) }

func (m avx) inRegister(x value) VecVirtual {
	if y, ok := x.(VecVirtual); ok {
		return y
	}
	y := m.vector()
	if p, ok := x.(spared); ok {
		VBROADCASTSS(p.Mem, y)
	} else {
		VMOVUPS(x.(Mem), y)
	}
	return y
}

// last is x as the last source of an instruction, which may lie in memory.
func (m avx) last(x value) Op {
	if p, ok := x.(Mem); ok {
		return p
	}
	return m.inRegister(x)
}

// op is x ∘ y.
func (m avx) op(f func(...Op), x, y value) value {
	a, b, r := m.inRegister(x), m.last(y), m.vector()
	f(b, a, r)
	return r
}

func (m avx) add(x, y value) value    { return m.op(VADDPS, x, y) }
func (m avx) sub(x, y value) value    { return m.op(VSUBPS, x, y) }
func (m avx) mul(x, y value) value    { return m.op(VMULPS, x, y) }
func (m avx) div(x, y value) value    { return m.op(VDIVPS, x, y) }
func (m avx) addInt(x, y value) value { return m.op(VPADDD, x, y) }
func (m avx) subInt(x, y value) value { return m.op(VPSUBD, x, y) }

func (m avx) or(x, y value) value {
	if m.wide() {
		return m.op(VPORD, x, y)
	}
	return m.op(VORPS, x, y)
}

func (m avx) sqrt(x value) value {
	r := m.vector()
	VSQRTPS(m.last(x), r)
	return r
}

// Of two numbers of which one is a NaN, or which both are zero, the minimum and
// the maximum are the last source.
func (m avx) atMost(x, limit value) value  { return m.op(VMINPS, limit, x) }
func (m avx) atLeast(x, limit value) value { return m.op(VMAXPS, limit, x) }

func (m avx) half(x value) value {
	r := m.vector()
	VPSRAD(Imm(1), m.inRegister(x), r)
	return r
}

func (m avx) exponent(x value) value {
	r := m.vector()
	VPSLLD(Imm(23), m.inRegister(x), r)
	return r
}

func (m avx) bySign(x, neg, pos value) value {
	r := m.vector()
	if m.wide() {
		sign := K()
		VPTESTMD(m.constant("signBits", 1<<31).(VecVirtual), m.inRegister(x), sign)
		VBLENDMPS(m.last(neg), m.inRegister(pos), sign, r)
		return r
	}
	VBLENDVPS(m.inRegister(x), m.last(neg), m.inRegister(pos), r)
	return r
}

func (avx) flag() value {
	seen := YMM()
	VXORPS(seen, seen, seen)
	return seen
}

func (m avx) raise(flag, x value) {
	zero, ne := YMM(), YMM()
	VXORPS(zero, zero, zero)
	VCMPPS(Imm(4), zero, m.inRegister(x), ne) // not equal or unordered
	VORPS(ne, flag.(VecVirtual), flag.(VecVirtual))
}

func (avx) returnFlag(flag value) {
	out, seen := GP8(), flag.(VecVirtual)
	VPTEST(seen, seen)
	SETNE(out)
	Store(out, ReturnIndex(0))
}

// A vector is a slice argument under way: its base, and the index register that
// all vectors of a kernel share.
type vector struct {
	base, index GPVirtual
	bytes       int
}

// at is the address of the register's worth of floats that lies u of those past the index.
func (v vector) at(u int) Mem {
	return Mem{Base: v.base, Index: v.index, Scale: 4, Disp: v.bytes * u}
}

func (m avx) sweep(ptrs []string, unroll int, body func(v func(name string) value) []result) {
	m.walk(ptrs, unroll, func(v func(string) value) ([]result, value) { return body(v), nil })
}

func (m avx) sum(ptrs []string, unroll int, body func(v func(name string) value) ([]result, value)) {
	sums, i, last, end := m.walk(ptrs, unroll, body)
	if m.wide() {
		VADDPS(end.(VecVirtual), sums[0], m.wideTail(i, last), sums[0])
	} else {
		VANDPS(m.tail(i, last), end.(VecVirtual), end.(VecVirtual))
		VADDPS(end.(VecVirtual), sums[0], sums[0])
	}
	m.fold(VADDPS, VADDSS, sums...)
}

// walk emits the loop of sweep, and adds up what body gives besides, a sum for each
// vector of a turn. The last vector's is end, which is not added.
func (m avx) walk(ptrs []string, unroll int, body func(v func(name string) value) ([]result, value)) (sums []VecVirtual, i, last GPVirtual, end value) {
	i, last = GP64(), GP64()
	v, tail := map[string]vector{}, map[string]vector{}
	for _, p := range ptrs {
		base := Load(Param(p), GP64()).(GPVirtual)
		v[p], tail[p] = vector{base, i, m.bytes}, vector{base, last, m.bytes}
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
	SUBQ(Imm(uint64(m.lanes())), last)
	ends, end := compute(tail, 0)
	if end != nil {
		for range unroll {
			s := m.vector()
			m.clear(s)
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
		LEAQ(Mem{Base: last, Disp: -m.lanes() * (unroll - 1)}, wide)
		loop("wide", i, wide, m.lanes()*unroll, func() {
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
	loop("narrow", i, last, m.lanes(), func() {
		r, x := compute(v, 0)
		store(v, 0, r)
		add(0, x)
	})
	store(tail, 0, ends)
	return sums, i, last, end
}

func (m avx) clear(s VecVirtual) {
	if m.wide() {
		VPXORD(s, s, s)
	} else {
		VXORPS(s, s, s)
	}
}

func (m avx) running(dst string, ptrs []string, body func(v func(name string) value) value) {
	i, n, sums := GP64(), GP64(), YMM()
	v := map[string]vector{}
	for _, p := range append([]string{dst}, ptrs...) {
		v[p] = vector{Load(Param(p), GP64()).(GPVirtual), i, m.bytes}
	}
	Load(Param("n"), n)
	VXORPS(sums, sums, sums)
	XORQ(i, i)
	loop("eight", i, n, 8, func() {
		VADDPS(m.last(body(func(name string) value { return v[name].at(0) })), sums, sums)
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
