package main

import "math"

func float(m machine, name string, x float32) value {
	return m.constant(name, math.Float32bits(x))
}

// exp emits exp1 of plainexp.go, operation by operation.
func exp(m machine, x value) value {
	x = m.atMost(x, float(m, "expMax", 89))
	x = m.atLeast(x, float(m, "expMin", -104))
	bias := float(m, "roundBias", 0x1.8p23)
	n := m.add(m.mul(x, float(m, "log2E", 1.4426950408889634)), bias)
	k := m.subInt(n, m.constant("roundBiasBits", 0x4b400000))
	n = m.sub(n, bias)
	r := m.sub(x, m.mul(n, float(m, "ln2Hi", 0.693359375)))
	r = m.sub(r, m.mul(n, float(m, "ln2Lo", -2.12194440054690583e-4)))
	q := m.mul(r, float(m, "expQ5", 0.00019790299))
	q = m.add(q, float(m, "expQ4", 0.0013944703))
	for _, c := range []struct {
		name string
		x    float32
	}{{"expQ3", 0.008333498}, {"expQ2", 0.041666295}, {"expQ1", 0.16666666}, {"expQ0", 0.5}} {
		q = m.add(m.mul(q, r), float(m, c.name, c.x))
	}
	y := m.add(m.mul(m.mul(r, r), q), r)
	y = m.add(y, float(m, "ones", 1))
	k1 := m.half(k)
	for _, k := range []value{k1, m.subInt(k, k1)} {
		y = m.mul(y, m.exponent(m.addInt(k, m.constant("exponentBias", 127))))
	}
	return y
}

func exponentials(m machine) {
	m.text("fastExp", "func(dst, x *float32, n int)", "is Exp for n ≥ lanes.")
	m.sweep([]string{"dst", "x"}, 2, func(v func(string) value) []result {
		return []result{{"dst", exp(m, v("x"))}}
	})
	m.ret()

	m.text("fastExpSum", "func(x *float32, n int, less float32) float32", "is ExpSum for n ≥ lanes.")
	less := m.argument("less")
	m.sum([]string{"x"}, 2, func(v func(string) value) ([]result, value) {
		y := exp(m, m.sub(v("x"), less))
		return []result{{"x", y}}, y
	})

	m.text("fastSigmoid", "func(dst, x *float32, n int)", "is Sigmoid for n ≥ lanes.")
	m.sweep([]string{"dst", "x"}, 2, func(v func(string) value) []result {
		x := m.load(v("x"))
		e := exp(m, m.or(x, m.constant("signBits", 1<<31)))
		ones := m.load(float(m, "ones", 1))
		return []result{{"dst", m.div(m.bySign(x, e, ones), m.add(ones, e))}}
	})
	m.ret()
}
