package main

import "fmt"

// rows and 16 columns of the result take 24 accumulators, 4 vectors of B and one
// element of A, in turns one of two.
func (a *neon) matrices() {
	for r := rows; r >= 1; r-- {
		a.product(r)
	}
	a.packRows()
	a.packColumns()
}

const vectorsOfStrip = 4

// product emits the product of r rows of A with a packed strip of B, for panels
// of r rows one below the other.
func (a *neon) product(r int) {
	productText(a, r)
	c, ldc, start := a.read("c"), a.read("ldc"), a.read("a")
	row, col, step := a.read("row"), a.read("col"), a.read("panel")
	strip, depth, panels := a.read("b"), a.read("k"), a.read("panels")
	add := a.integer()
	a.line("MOVBU %s, %s", a.param("add"), add)
	for _, g := range []string{ldc, row, col, step} {
		a.line("LSL $2, %s", g)
	}
	row2 := a.integer()
	a.line("LSL $1, %s, %s", row, row2)
	high, low, b, k := a.integer(), a.integer(), a.integer(), a.integer()
	// element addresses row i of a column of A: the first three off one register,
	// the others off a second one three rows below.
	element := func(i int) string {
		base := high
		if i >= 3 {
			base = low
		}
		return fmt.Sprintf("(%s)%s", base, []string{"", "(" + row + ")", "(" + row2 + ")"}[i%3])
	}

	a.loop("panel", func() {
		a.line("MOVD %s, %s", start, high)
		if r > 3 {
			a.line("ADD %s, %s, %s", row, row2, low)
			a.line("ADD %s, %s", start, low)
		}
		a.line("MOVD %s, %s", strip, b)
		a.line("MOVD %s, %s", depth, k)
		sums := make([][vectorsOfStrip]*register, r)
		for i := range sums {
			for h := range sums[i] {
				sums[i][h] = a.zero()
			}
		}
		a.loop("product", func() {
			y := a.loadStrip(b)
			for i := range sums {
				x := newRegister()
				a.emit("FMOVS "+element(i)+", F%d", x)
				for h, sum := range sums[i] {
					a.addMultiple(sum, y[h], x)
				}
			}
			a.line("ADD $%d, %s", bytesOfVector*vectorsOfStrip, b)
			a.line("ADD %s, %s", col, high)
			if r > 3 {
				a.line("ADD %s, %s", col, low)
			}
			a.line("SUB $1, %s", k)
			a.line("CBNZ %s, product", k)
		})
		a.line("CBZ %s, store", add)
		a.line("MOVD %s, %s", c, b)
		for i := range sums {
			for h, old := range a.loadStrip(b) {
				sum := sums[i][h]
				a.emitLine(func(v []int) string { return word3("fadd", v[0], v[0], v[1]) }, sum, old)
			}
			a.line("ADD %s, %s", ldc, b)
		}
		a.line("store:")
		for _, s := range sums {
			a.storePair(s[0], s[1], place{c, 0})
			a.storePair(s[2], s[3], place{c, 2 * bytesOfVector})
			a.line("ADD %s, %s", ldc, c)
		}
		a.line("ADD %s, %s", step, start)
		a.line("SUB $1, %s", panels)
		a.line("CBNZ %s, panel", panels)
	})
	a.ret()
}

// addMultiple adds x times the first lane of y.
func (a *neon) addMultiple(sum, x, y *register) {
	a.emitLine(func(v []int) string {
		return word(uint32(fmlaFirst|v[2]<<16|v[1]<<5|v[0]), "fmla v%d.4s, v%d.4s, v%d.s[0]", v[0], v[1], v[2])
	}, sum, x, y)
}

// loadStrip loads 16 floats.
func (a *neon) loadStrip(base string) [vectorsOfStrip]*register {
	var y [vectorsOfStrip]*register
	for h := 0; h < vectorsOfStrip; h += 2 {
		y[h], y[h+1] = a.loadPair(place{base, bytesOfVector * h})
	}
	return y
}

func (a *neon) loadPair(p place) (x, y *register) {
	x, y = newRegister(), newRegister()
	a.emit(fmt.Sprintf("FLDPQ %s, (F%%d, F%%d)", p), x, y)
	return x, y
}

func (a *neon) storePair(x, y *register, p place) {
	a.emit(fmt.Sprintf("FSTPQ (F%%d, F%%d), %s", p), x, y)
}

func (a *neon) packRows() {
	packRowsText(a)
	dst, src, ld, k := a.read("dst"), a.read("src"), a.read("ld"), a.read("k")
	a.line("LSL $2, %s", ld)
	a.loop("run", func() {
		x := a.loadStrip(src)
		for h := 0; h < vectorsOfStrip; h += 2 {
			a.storePair(x[h], x[h+1], place{dst, bytesOfVector * h})
		}
		a.line("ADD %s, %s", ld, src)
		a.line("ADD $%d, %s", bytesOfVector*vectorsOfStrip, dst)
		a.line("SUB $1, %s", k)
		a.line("CBNZ %s, run", k)
	})
	a.ret()
}

// packColumns transposes blocks of 4×4 in two steps: pairs of floats, pairs of
// pairs.
func (a *neon) packColumns() {
	packColumnsText(a)
	dst, src, ld, blocks := a.read("dst"), a.read("src"), a.read("ld"), a.read("blocks")
	a.line("LSL $2, %s", ld)
	rows := []string{src}
	for i := 1; i < 8; i++ {
		rows = append(rows, a.integer())
		a.line("ADD %s, %s, %s", ld, rows[i-1], rows[i])
	}
	a.loop("block", func() {
		var in [8][2]*register // 4 floats of each half of each row
		for i := range in {
			in[i][0], in[i][1] = a.loadPair(place{rows[i], 0})
			a.line("ADD $%d, %s", 2*bytesOfVector, rows[i])
		}
		for half := range 2 {
			var columns [2][4]value // of the upper and of the lower four rows
			for j := range columns {
				p := func(i int) value { return in[4*j+i][half] }
				even, odd := a.named("VTRN1", "S4", p(0), p(1)), a.named("VTRN2", "S4", p(0), p(1))
				even2, odd2 := a.named("VTRN1", "S4", p(2), p(3)), a.named("VTRN2", "S4", p(2), p(3))
				columns[j] = [4]value{
					a.named("VTRN1", "D2", even, even2), a.named("VTRN1", "D2", odd, odd2),
					a.named("VTRN2", "D2", even, even2), a.named("VTRN2", "D2", odd, odd2),
				}
			}
			for q := range 4 {
				at := place{dst, bytesOfVector * vectorsOfStrip * (4*half + q)}
				a.storePair(columns[0][q].(*register), columns[1][q].(*register), at)
			}
		}
		a.line("ADD $%d, %s", 8*bytesOfVector*vectorsOfStrip, dst)
		a.line("SUB $1, %s", blocks)
		a.line("CBNZ %s, block", blocks)
	})
	a.ret()
}
