package main

import (
	"fmt"
	"slices"
)

func (a *neon) argument(param string) value {
	r := newRegister()
	a.emit("FMOVS "+a.param(param)+", F%d", r)
	all := newRegister()
	a.emitLine(func(v []int) string { return fmt.Sprintf("VDUP V%d.S[0], V%d.S4", v[1], v[0]) }, all, r)
	return all
}

// There are registers enough to keep all.
func (a *neon) spare(param string) value { return a.argument(param) }

// constant is read where a kernel first needs it, which is before its loops.
func (a *neon) constant(name string, word uint32) value {
	if a.base == "" {
		a.base = a.integer()
		a.line("MOVD $constants<>(SB), %s", a.base)
	}
	if a.kept[name] == nil {
		a.kept[name] = a.reg(place{a.base, bytesOfVector * a.number(name, word)})
	}
	return a.kept[name]
}

// number is the constant's among all.
func (a *neon) number(name string, word uint32) int {
	i := slices.IndexFunc(a.all, func(c constant) bool { return c.name == name })
	switch {
	case i < 0:
		a.all = append(a.all, constant{name, word})
		return len(a.all) - 1
	case a.all[i].word != word:
		panic("two constants are called " + name)
	}
	return i
}

func (a *neon) load(x value) value { return a.reg(x) }

func (a *neon) reg(x value) *register {
	if r, ok := x.(*register); ok {
		return r
	}
	p, r := x.(place), newRegister()
	a.emit(fmt.Sprintf("FMOVQ %s, F%%d", p), r)
	return r
}

func (p place) String() string {
	if p.offset == 0 {
		return "(" + p.base + ")"
	}
	return fmt.Sprintf("%d(%s)", p.offset, p.base)
}

func (a *neon) word3(name string, x, y value) value {
	m, n, d := a.reg(x), a.reg(y), newRegister()
	a.emitLine(func(v []int) string { return word3(name, v[0], v[1], v[2]) }, d, m, n)
	return d
}

// named is an instruction that Go's assembler knows. It takes the second source
// first.
func (a *neon) named(name, arrangement string, x, y value) value {
	m, n, d := a.reg(x), a.reg(y), newRegister()
	a.emitLine(func(v []int) string {
		return fmt.Sprintf("%s V%d.%s, V%d.%[3]s, V%[5]d.%[3]s", name, v[2], arrangement, v[1], v[0])
	}, d, m, n)
	return d
}

func (a *neon) add(x, y value) value    { return a.word3("fadd", x, y) }
func (a *neon) sub(x, y value) value    { return a.word3("fsub", x, y) }
func (a *neon) mul(x, y value) value    { return a.word3("fmul", x, y) }
func (a *neon) div(x, y value) value    { return a.word3("fdiv", x, y) }
func (a *neon) addInt(x, y value) value { return a.named("VADD", "S4", x, y) }
func (a *neon) subInt(x, y value) value { return a.named("VSUB", "S4", x, y) }
func (a *neon) or(x, y value) value     { return a.named("VORR", "B16", x, y) }

func (a *neon) sqrt(x value) value {
	s, d := a.reg(x), newRegister()
	a.emitLine(func(v []int) string { return word2("fsqrt", v[0], v[1]) }, d, s)
	return d
}

// The instructions for minima and maxima would give NaN for any NaN, and order
// the zeros.
func (a *neon) atMost(x, limit value) value {
	s := a.reg(x)
	return a.choose(a.word3("fcmgt", s, limit), limit, s)
}

func (a *neon) atLeast(x, limit value) value {
	s := a.reg(x)
	return a.choose(a.word3("fcmgt", limit, s), limit, s)
}

// choose is x where the bits of mask are set, else y. The mask becomes the
// result.
func (a *neon) choose(mask, x, y value) value {
	a.emitLine(func(v []int) string { return fmt.Sprintf("VBSL V%d.B16, V%d.B16, V%d.B16", v[2], v[1], v[0]) },
		mask.(*register), a.reg(x), a.reg(y))
	return mask
}

func (a *neon) shiftRight(x value, shift int) value {
	s, d := a.reg(x), newRegister()
	a.emitLine(func(v []int) string {
		return word(uint32(sshr|(64-shift)<<16|v[1]<<5|v[0]), "sshr v%d.4s, v%d.4s, #%d", v[0], v[1], shift)
	}, d, s)
	return d
}

func (a *neon) half(x value) value { return a.shiftRight(x, 1) }

func (a *neon) exponent(x value) value {
	s, d := a.reg(x), newRegister()
	a.emitLine(func(v []int) string { return fmt.Sprintf("VSHL $23, V%d.S4, V%d.S4", v[1], v[0]) }, d, s)
	return d
}

func (a *neon) bySign(x, neg, pos value) value {
	return a.choose(a.shiftRight(x, 31), neg, pos)
}

func (a *neon) zero() *register {
	r := newRegister()
	a.emit("VEOR V%[1]d.B16, V%[1]d.B16, V%[1]d.B16", r)
	return r
}

// flag keeps where no lane was raised: all ones to begin with.
func (a *neon) flag() value {
	r := newRegister()
	a.emit("VMOVI $255, V%d.B16", r)
	return r
}

func (a *neon) raise(flag, x value) {
	s, is := a.reg(x), newRegister()
	a.emitLine(func(v []int) string {
		return word(uint32(fcmeqZero|v[1]<<5|v[0]), "fcmeq v%d.4s, v%d.4s, #0", v[0], v[1])
	}, is, s)
	f := flag.(*register)
	a.emit("VAND V%d.B16, V%[2]d.B16, V%[2]d.B16", is, f)
}

func (a *neon) returnFlag(flag value) {
	x, y := a.integer(), a.integer()
	a.emit("VMOV V%d.D[0], "+x, flag.(*register))
	a.emit("VMOV V%d.D[1], "+y, flag.(*register))
	a.line("AND %s, %s", x, y)
	a.line("CMP $-1, %s", y)
	a.line("CSET NE, %s", y)
	a.line("MOVB %s, %s", y, a.param(""))
}

func (a *neon) sweep(ptrs []string, unroll int, body func(v func(name string) value) []result) {
	a.walk(ptrs, unroll, func(v func(string) value) ([]result, value) { return body(v), nil })
}

func (a *neon) sum(ptrs []string, unroll int, body func(v func(name string) value) ([]result, value)) {
	sums, left, end := a.walk(ptrs, unroll, body)
	a.addTo(sums[0], a.named("VAND", "B16", end, a.tail(left)))
	a.fold("fadd", "faddp", sums[0], sums[1])
}

func (a *neon) addTo(sum *register, x value) {
	a.emitLine(func(v []int) string { return word3("fadd", v[0], v[0], v[1]) }, sum, a.reg(x))
}

// walk emits the loop of sweep, and adds up what body gives besides, in two sums. The
// last vector's is end, which is not added.
func (a *neon) walk(ptrs []string, unroll int, body func(v func(name string) value) ([]result, value)) (sums []*register, left string, end value) {
	at, tail := map[string]string{}, map[string]string{}
	var moving []string
	for _, p := range ptrs {
		at[p] = a.read(p)
		moving = append(moving, at[p])
	}
	left = a.read("n") // from where the loop is, until the last vector
	a.line("SUB $4, %s", left)
	for _, p := range ptrs {
		tail[p] = a.integer()
		a.line("ADD %s<<2, %s, %s", left, at[p], tail[p])
	}
	ends, end := body(func(name string) value { return place{tail[name], 0} })
	if end != nil {
		sums = []*register{a.zero(), a.zero()}
	}
	vector := func(u int) func(v func(name string) value) []result {
		return func(v func(name string) value) []result {
			r, x := body(v)
			if x != nil {
				a.addTo(sums[u%2], x)
			}
			return r
		}
	}
	// A turn of one vector would be mostly the loop's own instructions.
	wide := max(unroll, 2)
	a.turns("wide", wide, moving, left, func() { a.turn(at, wide, vector) })
	a.turns("narrow", 1, moving, left, func() { a.turn(at, 1, vector) })
	for _, r := range ends {
		a.emit("FMOVQ F%d, "+place{tail[r.to], 0}.String(), r.x.(*register))
	}
	return sums, left, end
}

func (a *neon) running(dst string, ptrs []string, body func(v func(name string) value) value) {
	at := map[string]string{}
	var moving []string
	for _, p := range append([]string{dst}, ptrs...) {
		at[p] = a.read(p)
		moving = append(moving, at[p])
	}
	left := a.read("n")
	sums := []*register{a.zero(), a.zero()} // of the first and the second four of eight
	a.turns("eight", 2, moving, left, func() {
		var four [2]map[string]*register
		four[0], four[1] = map[string]*register{}, map[string]*register{}
		for _, p := range ptrs {
			four[0][p], four[1][p] = a.loadPair(place{at[p], 0})
		}
		for u, sum := range sums {
			x := a.reg(body(func(name string) value { return four[u][name] }))
			a.addTo(sum, x)
		}
		a.storePair(sums[0], sums[1], place{at[dst], 0})
	})
}

// turns emits a loop that body does unroll vectors of in a turn, while so many
// and the last are left. The pointers move along.
func (a *neon) turns(label string, unroll int, ptrs []string, left string, body func()) {
	a.line("B %sTest", label)
	a.loop(label, func() {
		body()
		for _, p := range ptrs {
			a.line("ADD $%d, %s", bytesOfVector*unroll, p)
		}
		a.line("SUB $%d, %s", 4*unroll, left)
		a.line("%sTest:", label)
		a.line("CMP $%d, %s", 4*(unroll-1), left)
		a.line("BGT %s", label)
	})
}

// turn computes unroll vectors of each result. It loads and stores them by twos.
func (a *neon) turn(at map[string]string, unroll int, vector func(u int) func(v func(name string) value) []result) {
	seconds := map[string]*register{} // of the pairs loaded last
	results := make([][]result, unroll)
	for u := range results {
		results[u] = vector(u)(func(name string) value {
			switch p := (place{at[name], bytesOfVector * u}); {
			case u%2 == 1:
				return seconds[name]
			case u+1 < unroll:
				first, second := a.loadPair(p)
				seconds[name] = second
				return first
			default:
				return p
			}
		})
	}
	for u := 0; u < unroll; u += 2 {
		for i, r := range results[u] {
			p, x := place{at[r.to], bytesOfVector * u}, r.x.(*register)
			if u+1 < unroll {
				a.storePair(x, results[u+1][i].x.(*register), p)
			} else {
				a.emit("FMOVQ F%d, "+p.String(), x)
			}
		}
	}
}
