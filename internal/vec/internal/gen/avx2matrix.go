package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// rows and 16 columns of the result take 12 accumulators, 2 vectors of B and one
// element of A.
func (m *avx) matrices() {
	for r := rows; r >= 1; r-- {
		m.product(r)
	}
	m.packRows()
	m.packColumns()
}

// product emits the product of r rows of A with a packed strip of B, for panels
// of r rows one below the other.
func (m *avx) product(r int) {
	productText(m, r)
	c, ldc := Load(Param("c"), GP64()).(GPVirtual), Load(Param("ldc"), GP64()).(GPVirtual)
	start := Load(Param("a"), GP64()).(GPVirtual)
	row, col := Load(Param("row"), GP64()).(GPVirtual), Load(Param("col"), GP64()).(GPVirtual)
	for _, g := range []GPVirtual{ldc, row, col} {
		SHLQ(Imm(2), g)
	}

	acc := make([][2]VecVirtual, r)
	for i := range acc {
		acc[i] = [2]VecVirtual{YMM(), YMM()}
	}
	b0, b1, x := YMM(), YMM(), YMM()
	a, low, b, k := GP64(), GP64(), GP64(), GP64()
	// at addresses row i of rows that lie stride apart: the first three off one
	// base, the others off a second one three rows below.
	at := func(base, low, stride GPVirtual, i int) Mem {
		m := Mem{Base: base}
		if i >= 3 {
			m.Base, i = low, i-3
		}
		if i > 0 {
			m.Index, m.Scale = stride, uint8(i)
		}
		return m
	}

	Label("panel")
	MOVQ(start, a)
	if r > 3 {
		LEAQ(Mem{Base: a, Index: row, Scale: 2}, low)
		ADDQ(row, low)
	}
	Load(Param("b"), b)
	Load(Param("k"), k)
	for i := range acc {
		VXORPS(acc[i][0], acc[i][0], acc[i][0])
		VXORPS(acc[i][1], acc[i][1], acc[i][1])
	}
	Label("product")
	VMOVUPS(Mem{Base: b}, b0)
	VMOVUPS(Mem{Base: b, Disp: 32}, b1)
	for i := range acc {
		VBROADCASTSS(at(a, low, row, i), x)
		VFMADD231PS(b0, x, acc[i][0])
		VFMADD231PS(b1, x, acc[i][1])
	}
	ADDQ(Imm(64), b)
	ADDQ(col, a)
	if r > 3 {
		ADDQ(col, low)
	}
	DECQ(k)
	JNE(LabelRef("product"))

	clow := GP64()
	if r > 3 {
		LEAQ(Mem{Base: c, Index: ldc, Scale: 2}, clow)
		ADDQ(ldc, clow)
	}
	flag := Load(Param("add"), GP8())
	TESTB(flag, flag)
	JEQ(LabelRef("store"))
	for i := range acc {
		for h := range 2 {
			VADDPS(at(c, clow, ldc, i).Offset(32*h), acc[i][h], acc[i][h])
		}
	}
	Label("store")
	for i := range acc {
		for h := range 2 {
			VMOVUPS(acc[i][h], at(c, clow, ldc, i).Offset(32*h))
		}
	}
	step := Load(Param("panel"), GP64()).(GPVirtual)
	LEAQ(Mem{Base: start, Index: step, Scale: 4}, start)
	for range r {
		ADDQ(ldc, c)
	}
	nextPanel()
}

// nextPanel emits the end of a kernel that goes past panels, from the label on.
func nextPanel() {
	panels, err := Param("panels").Resolve()
	if err != nil {
		panic(err)
	}
	DECQ(panels.Addr)
	JNE(LabelRef("panel"))
	VZEROUPPER()
	RET()
}

func (m *avx) packRows() {
	packRowsText(m)
	dst, src := Load(Param("dst"), GP64()).(GPVirtual), Load(Param("src"), GP64()).(GPVirtual)
	ld, k := Load(Param("ld"), GP64()).(GPVirtual), Load(Param("k"), GP64()).(GPVirtual)
	SHLQ(Imm(2), ld)
	x, y := YMM(), YMM()
	Label("run")
	VMOVUPS(Mem{Base: src}, x)
	VMOVUPS(Mem{Base: src, Disp: 32}, y)
	VMOVUPS(x, Mem{Base: dst})
	VMOVUPS(y, Mem{Base: dst, Disp: 32})
	ADDQ(ld, src)
	ADDQ(Imm(64), dst)
	DECQ(k)
	JNE(LabelRef("run"))
	VZEROUPPER()
	RET()
}

// packColumns transposes blocks of 8×8 in three steps: pairs of floats, pairs
// of pairs, halves.
func (m *avx) packColumns() {
	packColumnsText(m)
	dst, src := Load(Param("dst"), GP64()).(GPVirtual), Load(Param("src"), GP64()).(GPVirtual)
	ld, blocks := Load(Param("ld"), GP64()).(GPVirtual), Load(Param("blocks"), GP64()).(GPVirtual)
	SHLQ(Imm(2), ld)
	low, ld3 := GP64(), GP64()
	LEAQ(Mem{Base: ld, Index: ld, Scale: 2}, ld3)
	LEAQ(Mem{Base: src, Index: ld, Scale: 4}, low)
	Label("block")
	in := make([]VecVirtual, 8)
	for i := range in {
		m := Mem{Base: src}
		if i >= 4 {
			m.Base = low
		}
		switch i % 4 {
		case 1, 2:
			m.Index, m.Scale = ld, uint8(i%4)
		case 3:
			m.Index, m.Scale = ld3, 1
		}
		in[i] = YMM()
		VMOVUPS(m, in[i])
	}
	pairs := make([]VecVirtual, 8)
	for i := 0; i < 8; i += 2 {
		pairs[i], pairs[i+1] = YMM(), YMM()
		VUNPCKLPS(in[i+1], in[i], pairs[i])
		VUNPCKHPS(in[i+1], in[i], pairs[i+1])
	}
	quads := make([]VecVirtual, 8) // quads[q], q<4: columns q and q+4 of rows 0…3; q≥4: of rows 4…7
	for i := 0; i < 8; i += 4 {
		for h := range 2 {
			lo, hi := YMM(), YMM()
			VUNPCKLPD(pairs[i+2+h], pairs[i+h], lo)
			VUNPCKHPD(pairs[i+2+h], pairs[i+h], hi)
			quads[i+2*h], quads[i+2*h+1] = lo, hi
		}
	}
	for p := range 8 {
		out := YMM()
		half := uint64(0x20) // low halves
		if p >= 4 {
			half = 0x31
		}
		VPERM2F128(Imm(half), quads[4+p%4], quads[p%4], out)
		VMOVUPS(out, Mem{Base: dst, Disp: 64 * p})
	}
	ADDQ(Imm(32), src)
	ADDQ(Imm(32), low)
	ADDQ(U32(8*64), dst)
	DECQ(blocks)
	JNE(LabelRef("block"))
	VZEROUPPER()
	RET()
}
