package main

import "fmt"

func (a *neon) reductions() {
	a.dot()
	a.largest()
}

// largest emits the maximum. The last 4 elements are taken first, as what is had twice
// does no harm.
func (a *neon) largest() {
	a.text("fastMax", "func(x *float32, n int) float32", "is Max for n ≥ lanes.")
	x, left, end := a.read("x"), a.read("n"), a.integer()
	a.line("SUB $4, %s", left)
	a.line("ADD %s<<2, %s, %s", left, x, end)
	most := make([]*register, 4)
	for i := range most {
		most[i] = a.reg(place{end, 0})
	}
	raise := func(m, y *register) {
		a.emitLine(func(v []int) string { return word3("fmax", v[0], v[0], v[1]) }, m, y)
	}
	a.turns("wide", len(most), []string{x}, left, func() {
		for u := 0; u < len(most); u += 2 {
			y0, y1 := a.loadPair(place{x, bytesOfVector * u})
			raise(most[u], y0)
			raise(most[u+1], y1)
		}
	})
	a.turns("narrow", 1, []string{x}, left, func() { raise(most[0], a.reg(place{x, 0})) })
	a.fold("fmax", "fmaxp", most[0], most[1], most[2], most[3])
}

// fold brings the lanes of all registers together, by an operation on two and by
// one on neighbours, and makes that the kernel's result.
func (a *neon) fold(op, pairs string, x ...value) {
	for n := len(x) / 2; n > 0; n /= 2 {
		for i := range n {
			x[i] = a.word3(op, x[2*i], x[2*i+1])
		}
	}
	all := x[0]
	for range 2 {
		all = a.word3(pairs, all, all)
	}
	a.emit("FMOVS F%d, "+a.param(""), all.(*register))
	a.ret()
}

// tail moves pointers to the last 4 elements, and gives the mask of those of them that
// a loop has left.
func (a *neon) tail(left string, ptrs ...string) *register {
	// Now left is 0 … -3: so many elements at the start of the last 4 are done.
	masks := a.integer()
	a.line("MOVD $tailMask<>(SB), %s", masks)
	for _, p := range append([]string{masks}, ptrs...) {
		a.line("ADD %s<<2, %s", left, p)
	}
	return a.reg(place{masks, bytesOfVector})
}

// dot emits the dot product. Its last up to 4 products come from the
// last 4 elements, of which those that the loop has had are masked out of both
// factors (an infinity times a masked zero would be NaN).
func (a *neon) dot() {
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
	mask := a.tail(left, x, y)
	p := a.named("VAND", "B16", place{x, 0}, mask).(*register)
	q := a.named("VAND", "B16", place{y, 0}, mask).(*register)
	a.addProduct(sums[1], p, q)
	a.fold("fadd", "faddp", sums[0], sums[1], sums[2], sums[3])
}

func (a *neon) addProduct(sum, x, y *register) {
	a.emitLine(func(v []int) string { return fmt.Sprintf("VFMLA V%d.S4, V%d.S4, V%d.S4", v[2], v[1], v[0]) }, sum, x, y)
}
