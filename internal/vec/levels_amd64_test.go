//go:build !purego

package vec

// levels are the kinds of kernels that this processor has, and the plain loops.
func levels() map[string]func() {
	f, w := fast, wide
	l := map[string]func(){"plain": func() { fast, wide = false, false }}
	if f {
		l["AVX2"] = func() { fast, wide = true, false }
	}
	if w {
		l["AVX-512"] = func() { fast, wide = true, true }
	}
	return l
}

// restore returns what undoes a choice among the levels.
func restore() func() {
	f, w := fast, wide
	return func() { fast, wide = f, w }
}
