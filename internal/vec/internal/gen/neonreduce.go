package main

import "fmt"

// reductions emits the dot product. Its last up to 4 products come from the
// last 4 elements, of which those that the loop has had are masked out of both
// factors (an infinity times a masked zero would be NaN).
func (a *neon) reductions() {
	a.text("fastDot", "func(a, b *float32, n int) float32", "is Dot for n ≥ lanes.")
	x, y, left := a.read("a"), a.read("b"), a.read("n")
	a.line("SUB $4, %s", left)
	sums := make([]*register, 4)
	for i := range sums {
		sums[i] = a.zero()
	}
	a.turns("wide", len(sums), []string{x, y}, left, func() {
		for u := 0; u < len(sums); u += 2 {
			x0, x1 := a.loadPair(place{x, bytesOfVector * u})
			y0, y1 := a.loadPair(place{y, bytesOfVector * u})
			a.addProduct(sums[u], x0, y0)
			a.addProduct(sums[u+1], x1, y1)
		}
	})
	a.turns("narrow", 1, []string{x, y}, left, func() {
		a.addProduct(sums[0], a.reg(place{x, 0}), a.reg(place{y, 0}))
	})
	// Now left is 0 … -3: so many elements at the start of the last 4 are done.
	masks := a.integer()
	a.line("MOVD $tailMask<>(SB), %s", masks)
	for _, p := range []string{masks, x, y} {
		a.line("ADD %s<<2, %s", left, p)
	}
	mask := a.reg(place{masks, bytesOfVector})
	p := a.named("VAND", "B16", place{x, 0}, mask).(*register)
	q := a.named("VAND", "B16", place{y, 0}, mask).(*register)
	a.addProduct(sums[1], p, q)

	sum := a.add(a.add(sums[0], sums[1]), a.add(sums[2], sums[3]))
	for range 2 {
		sum = a.word3("faddp", sum, sum)
	}
	a.emit("FMOVS F%d, "+a.param(""), sum.(*register))
	a.ret()
}

func (a *neon) addProduct(sum, x, y *register) {
	a.emitLine(func(v []int) string { return fmt.Sprintf("VFMLA V%d.S4, V%d.S4, V%d.S4", v[2], v[1], v[0]) }, sum, x, y)
}
