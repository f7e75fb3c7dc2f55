package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// wideRows are the heights of the panels that AVX-512 has kernels for, the highest
// first: it has 32 registers, so that 12 rows and 32 columns of the result take 24
// accumulators, 2 vectors of B and one element of A. What is left of the rows of a
// matrix goes through the lower ones, one after the other.
var wideRows = []int{12, 8, 4, 2, 1}

// wideMatrices emits the matrix products with AVX-512. They take strips as AVX2
// does, one or two at a time.
func wideMatrices() {
	for strips := 2; strips >= 1; strips-- {
		for _, r := range wideRows {
			wideProduct(r, strips)
		}
	}
	widePack()
}

// wideProduct emits the product of r rows of A with packed strips of B, for panels of
// r rows one below the other.
func wideProduct(r, strips int) {
	name := fmt.Sprintf("wide%dx%d", r, 16*strips)
	doc := fmt.Sprintf(`is gemm6 for panels of %d rows, with AVX-512,
for %d strips, one behind the other. The last one has columns of C where mask has bits.`, r, strips)
	avx2().text(name, strings.Replace(productSig, "add bool)", "add bool, mask uint16)", 1), doc)
	c, ldc := Load(Param("c"), GP64()).(GPVirtual), Load(Param("ldc"), GP64()).(GPVirtual)
	start := Load(Param("a"), GP64()).(GPVirtual)
	row, col := Load(Param("row"), GP64()).(GPVirtual), Load(Param("col"), GP64()).(GPVirtual)
	for _, g := range []GPVirtual{ldc, row, col} {
		SHLQ(Imm(2), g)
	}
	acc := make([][]VecVirtual, r)
	for i := range acc {
		for range strips {
			acc[i] = append(acc[i], ZMM())
		}
	}
	var y []VecVirtual
	for range strips {
		y = append(y, ZMM())
	}
	// Rows are addressed off bases that lie four rows apart.
	bases := make([]GPVirtual, (r+3)/4)
	for i := range bases {
		bases[i] = GP64()
	}
	stride3, x := GP64(), ZMM()
	at := func(stride GPVirtual, i int) Mem {
		m := Mem{Base: bases[i/4]}
		switch i % 4 {
		case 1, 2:
			m.Index, m.Scale = stride, uint8(i%4)
		case 3:
			m.Index, m.Scale = stride3, 1
		}
		return m
	}
	columns, err := Param("mask").Resolve()
	if err != nil {
		panic(err)
	}
	mask := K()
	KMOVW(columns.Addr, mask)
	begin := func(first, stride GPVirtual) {
		MOVQ(first, bases[0])
		for i := 1; i < len(bases); i++ {
			LEAQ(Mem{Base: bases[i-1], Index: stride, Scale: 4}, bases[i])
		}
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	}
	b, k := []GPVirtual{GP64()}, GP64()

	Label("panel")
	begin(c, ldc)
	for i := range acc {
		for h := range acc[i] {
			PREFETCHT0(at(ldc, i).Offset(64 * h))
		}
	}
	begin(start, row)
	Load(Param("b"), b[0])
	Load(Param("k"), k)
	if strips > 1 {
		b = append(b, GP64())
		MOVQ(k, b[1])
		SHLQ(Imm(6), b[1])
		ADDQ(b[0], b[1])
	}
	for i := range acc {
		for _, s := range acc[i] {
			VPXORD(s, s, s)
		}
	}
	Label("product")
	for h := range y {
		VMOVUPS(Mem{Base: b[h]}, y[h])
	}
	for i := range acc {
		VBROADCASTSS(at(row, i), x)
		for h, s := range acc[i] {
			VFMADD231PS(y[h], x, s)
		}
	}
	for _, g := range b {
		ADDQ(Imm(64), g)
	}
	for _, g := range bases {
		ADDQ(col, g)
	}
	DECQ(k)
	JNE(LabelRef("product"))

	begin(c, ldc)
	flag := Load(Param("add"), GP8())
	TESTB(flag, flag)
	JEQ(LabelRef("store"))
	for i := range acc {
		for h, s := range acc[i][:strips-1] {
			VADDPS(at(ldc, i).Offset(64*h), s, s)
		}
		s := acc[i][strips-1]
		VADDPS(at(ldc, i).Offset(64*(strips-1)), s, mask, s)
	}
	Label("store")
	for i := range acc {
		for h, s := range acc[i][:strips-1] {
			VMOVUPS(s, at(ldc, i).Offset(64*h))
		}
		VMOVUPS(acc[i][strips-1], mask, at(ldc, i).Offset(64*(strips-1)))
	}
	step := Load(Param("panel"), GP64()).(GPVirtual)
	LEAQ(Mem{Base: start, Index: step, Scale: 4}, start)
	for left := r; left > 0; {
		n := 8
		for n > left {
			n /= 2
		}
		LEAQ(Mem{Base: c, Index: ldc, Scale: uint8(n)}, c)
		left -= n
	}
	nextPanel()
}

// widePack emits the copy of a panel out of a matrix that lies by columns.
func widePack() {
	avx2().text("widePack", "func(dst, src *float32, ld, k, rows int)",
		fmt.Sprintf("copies k ≥ 1 runs of rows ≤ %d floats that lie ld floats apart, to where they lie %[1]d apart, with AVX-512.", wideRows[0]))
	dst, src := Load(Param("dst"), GP64()).(GPVirtual), Load(Param("src"), GP64()).(GPVirtual)
	ld, k := Load(Param("ld"), GP64()).(GPVirtual), Load(Param("k"), GP64()).(GPVirtual)
	SHLQ(Imm(2), ld)
	bits := GP64()
	Load(Param("rows"), RCX)
	MOVQ(I32(1), bits)
	SHLQ(CL, bits)
	DECQ(bits)
	mask, x := K(), ZMM()
	KMOVW(bits.As32(), mask)
	Label("run")
	VMOVUPS_Z(Mem{Base: src}, mask, x)
	VMOVUPS(x, mask, Mem{Base: dst})
	ADDQ(ld, src)
	ADDQ(U32(uint32(4*wideRows[0])), dst)
	DECQ(k)
	JNE(LabelRef("run"))
	VZEROUPPER()
	RET()
}
