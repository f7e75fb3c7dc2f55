package main

import "math"

func elementwise(m machine) {
	m.text("fastAdd", "func(dst, x *float32, n int)", "is Add for n ≥ lanes.")
	m.sweep([]string{"dst", "x"}, 4, func(v func(string) value) []result {
		return []result{{"dst", m.add(v("dst"), v("x"))}}
	})
	m.ret()

	m.text("fastSub", "func(dst, x *float32, n int)", "is Sub for n ≥ lanes.")
	m.sweep([]string{"dst", "x"}, 4, func(v func(string) value) []result {
		return []result{{"dst", m.sub(v("dst"), v("x"))}}
	})
	m.ret()

	m.text("fastAXPY", "func(dst *float32, a float32, x *float32, n int)", "is AXPY for n ≥ lanes.")
	a := m.argument("a")
	m.sweep([]string{"dst", "x"}, 4, func(v func(string) value) []result {
		return []result{{"dst", m.add(m.mul(a, v("x")), v("dst"))}}
	})
	m.ret()

	m.text("fastScale", "func(dst *float32, a float32, n int)", "is Scale for n ≥ lanes.")
	a = m.argument("a")
	m.sweep([]string{"dst"}, 4, func(v func(string) value) []result {
		return []result{{"dst", m.mul(a, v("dst"))}}
	})
	m.ret()

	m.text("fastMul", "func(dst, a, b *float32, n int)", "is Mul for n ≥ lanes.")
	m.sweep([]string{"dst", "a", "b"}, 4, func(v func(string) value) []result {
		return []result{{"dst", m.mul(v("a"), v("b"))}}
	})
	m.ret()

	m.text("fastAddMul", "func(dst, a, b *float32, n int)", "is AddMul for n ≥ lanes.")
	m.sweep([]string{"dst", "a", "b"}, 4, func(v func(string) value) []result {
		return []result{{"dst", m.add(m.mul(v("a"), v("b")), v("dst"))}}
	})
	m.ret()

	delta(m)
	adagrad(m)
	roots(m)
	adam(m)
	odds(m)
	pair(m)
}

// delta raises its flag more than once for some of the last elements, with the
// same outcome.
func delta(m machine) {
	m.text("fastDelta", "func(dst, val, sub *float32, n int) bool", "is Delta for n ≥ lanes.")
	changed := m.flag()
	m.sweep([]string{"dst", "val", "sub"}, 1, func(v func(string) value) []result {
		val := m.load(v("val"))
		diff := m.sub(val, v("sub"))
		m.raise(changed, diff)
		return []result{{"dst", diff}, {"sub", val}}
	})
	m.returnFlag(changed)
	m.ret()
}

func adagrad(m machine) {
	m.text("fastAdaGrad", "func(value, acc, grad *float32, n int, lr, eps float32)", "is AdaGrad for n ≥ lanes.")
	lr, eps, most := m.argument("lr"), m.argument("eps"), float(m, "accMax", math.MaxFloat32)
	m.sweep([]string{"value", "acc", "grad"}, 2, func(v func(string) value) []result {
		g := m.load(v("grad"))
		acc := m.atMost(m.add(m.mul(g, g), v("acc")), most)
		root := m.add(m.sqrt(acc), eps)
		step := m.div(m.mul(lr, g), root)
		return []result{{"acc", acc}, {"value", m.sub(v("value"), step)}}
	})
	m.ret()
}

func roots(m machine) {
	m.text("fastMulRoot", "func(x, acc *float32, n int, eps float32)", "is MulRoot for n ≥ lanes.")
	eps := m.argument("eps")
	m.sweep([]string{"x", "acc"}, 2, func(v func(string) value) []result {
		return []result{{"x", m.mul(m.add(m.sqrt(v("acc")), eps), v("x"))}}
	})
	m.ret()

	m.text("fastAddDivRoot", "func(dst, acc, x *float32, n int, eps float32)", "is AddDivRoot for n ≥ lanes.")
	eps = m.argument("eps")
	m.sweep([]string{"dst", "acc", "x"}, 2, func(v func(string) value) []result {
		root := m.add(m.sqrt(v("acc")), eps)
		return []result{{"dst", m.add(m.div(v("x"), root), v("dst"))}}
	})
	m.ret()
}

func adam(m machine) {
	m.text("fastAdam", "func(value, m, v, grad *float32, n int, lr, b1, b2, eps, c1, c2, limit float32)", "is Adam for n ≥ lanes.")
	lr, eps, limit := m.argument("lr"), m.argument("eps"), m.argument("limit")
	zero := m.load(float(m, "zeros", 0))
	minus := m.mul(limit, float(m, "minusOnes", -1))
	b1, b2 := m.argument("b1"), m.argument("b2")
	ones := m.load(float(m, "ones", 1))
	a1, a2 := m.sub(ones, b1), m.sub(ones, b2)
	c1, c2 := m.spare("c1"), m.spare("c2")
	m.sweep([]string{"value", "m", "v", "grad"}, 1, func(v func(string) value) []result {
		g := m.load(v("grad"))
		mean := m.add(m.mul(b1, v("m")), m.mul(a1, g))
		square := m.mul(b2, m.atLeast(v("v"), zero))
		square = m.add(square, m.mul(a2, m.mul(g, g)))
		root := m.add(m.sqrt(m.mul(square, c2)), eps)
		r := m.div(m.mul(mean, c1), root)
		r = m.atLeast(m.atMost(r, limit), minus)
		return []result{{"m", mean}, {"v", square}, {"value", m.sub(v("value"), m.mul(lr, r))}}
	})
	m.ret()
}

func odds(m machine) {
	m.text("fastTopicOdds", "func(dst, weight, word *float32, n int, beta float32)", "is TopicOdds where n is a multiple of 8.")
	beta := m.argument("beta")
	zero := m.load(float(m, "zeros", 0))
	m.running("dst", []string{"weight", "word"}, func(v func(string) value) value {
		return m.mul(m.add(m.atLeast(v("word"), zero), beta), v("weight"))
	})
	m.ret()
}

func pair(m machine) {
	m.text("fastPairStep", "func(p, q *float32, n int, keep, by float32)", "is PairStep for n ≥ lanes.")
	keep, by := m.argument("keep"), m.argument("by")
	m.sweep([]string{"p", "q"}, 2, func(v func(string) value) []result {
		p, q := m.load(v("p")), m.load(v("q"))
		return []result{{"p", m.add(m.mul(keep, p), m.mul(by, q))}, {"q", m.add(m.mul(keep, q), m.mul(by, p))}}
	})
	m.ret()
}
