// Command gen writes the AVX2 assembly of package vec and its Go declarations.
// It is a module of its own so that the main module does not depend on avo.
// Run it by "go generate" in package vec.
package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!purego")
	elementwise()
	complexProducts()
	reductions()
	exponentials()
	matrices()
	Generate()
}

// A vector is a slice argument under way: its base, and the index register that
// all vectors of a kernel share.
type vector struct{ base, index GPVirtual }

// at is the address of the 8 floats that lie 8·u floats past the index.
func (v vector) at(u int) Mem { return Mem{Base: v.base, Index: v.index, Scale: 4, Disp: 32 * u} }

func (v vector) load(u int) VecVirtual {
	y := YMM()
	VMOVUPS(v.at(u), y)
	return y
}

// broadcast fills a register with a float32 argument.
func broadcast(param string) VecVirtual {
	y := YMM()
	addr, err := Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(addr.Addr, y)
	return y
}

// sweep emits the loop of an elementwise kernel. Its function must have the
// named pointers and "n", at least 8, as parameters. body computes 8 elements at
// offset u and returns the results; store writes them.
//
// The last 8 elements are loaded and computed before the loop, and stored after
// it. They overlap with the loop's where n is no multiple of 8; both then write
// the same results, as both read the original elements. So there is no
// elementwise tail.
func sweep(ptrs []string, unroll int, body func(v map[string]vector, u int) []VecVirtual, store func(v map[string]vector, u int, r []VecVirtual)) {
	i, last := GP64(), GP64()
	v, tail := map[string]vector{}, map[string]vector{}
	for _, p := range ptrs {
		base := Load(Param(p), GP64()).(GPVirtual)
		v[p], tail[p] = vector{base, i}, vector{base, last}
	}
	Load(Param("n"), last)
	SUBQ(Imm(8), last)
	end := body(tail, 0)
	XORQ(i, i)
	if unroll > 1 {
		wide := GP64()
		LEAQ(Mem{Base: last, Disp: -8 * (unroll - 1)}, wide)
		loop("wide", i, wide, 8*unroll, func() {
			r := make([][]VecVirtual, unroll)
			for u := range r {
				r[u] = body(v, u)
			}
			for u := range r {
				store(v, u, r[u])
			}
		})
	}
	loop("narrow", i, last, 8, func() { store(v, 0, body(v, 0)) })
	store(tail, 0, end)
	VZEROUPPER()
	RET()
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

func text(name, sig, doc string) {
	TEXT(name, NOSPLIT, sig)
	Doc(strings.Split(name+" "+doc, "\n")...)
	Pragma("noescape")
}
