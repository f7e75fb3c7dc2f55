package main

// complexProducts emits the products of complex vectors in split layout.
// The kernels get separate pointers to real and imaginary parts.
func complexProducts(m machine) {
	for _, k := range []struct {
		name, doc string
		conj, add bool
	}{
		{"fastMulComplex", "MulComplex", false, false},
		{"fastAddMulComplex", "AddMulComplex", false, true},
		{"fastMulConj", "MulConj", true, false},
		{"fastAddMulConj", "AddMulConj", true, true},
	} {
		inRe, inIm := m.sub, m.add
		if k.conj {
			inRe, inIm = m.add, m.sub
		}
		m.text(k.name, "func(dr, di, ar, ai, br, bi *float32, n int)", "is "+k.doc+" for n ≥ lanes complex numbers.")
		m.sweep([]string{"dr", "di", "ar", "ai", "br", "bi"}, 1, func(v func(string) value) []result {
			ar, ai := m.load(v("ar")), m.load(v("ai"))
			br, bi := m.load(v("br")), m.load(v("bi"))
			re := inRe(m.mul(ar, br), m.mul(ai, bi))
			im := inIm(m.mul(ar, bi), m.mul(ai, br))
			if k.add {
				re, im = m.add(re, v("dr")), m.add(im, v("di"))
			}
			return []result{{"dr", re}, {"di", im}}
		})
		m.ret()
	}

	m.text("fastAddMulModulus", "func(dr, di, ar, ai *float32, n int, by float32)", "is AddMulModulus for n ≥ lanes complex numbers.")
	by := m.argument("by")
	m.sweep([]string{"dr", "di", "ar", "ai"}, 2, func(v func(string) value) []result {
		ar, ai := m.load(v("ar")), m.load(v("ai"))
		f := m.mul(by, m.sqrt(m.add(m.mul(ar, ar), m.mul(ai, ai))))
		return []result{{"dr", m.add(m.mul(f, ar), v("dr"))}, {"di", m.add(m.mul(f, ai), v("di"))}}
	})
	m.ret()
}
