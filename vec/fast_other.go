//go:build !amd64 || purego

package vec

// fast is false: there are no kernels here. Calls of them stand behind it and
// are dropped by the compiler; the declarations below only give them a type.
const fast = false

const none = "vec: no fast kernels in this build"

func addAVX2(dst, x *float32, n int)                                { panic(none) }
func subAVX2(dst, x *float32, n int)                                { panic(none) }
func axpyAVX2(dst *float32, a float32, x *float32, n int)           { panic(none) }
func scaleAVX2(dst *float32, a float32, n int)                      { panic(none) }
func mulAVX2(dst, a, b *float32, n int)                             { panic(none) }
func addMulAVX2(dst, a, b *float32, n int)                          { panic(none) }
func deltaAVX2(dst, val, sub *float32, n int) bool                  { panic(none) }
func adaGradAVX2(value, acc, grad *float32, n int, lr, eps float32) { panic(none) }
func mulRootAVX2(x, acc *float32, n int, eps float32)               { panic(none) }
func addDivRootAVX2(dst, acc, x *float32, n int, eps float32)       { panic(none) }
func adamAVX2(value, m, v, grad *float32, n int, lr, b1, b2, eps, c1, c2, limit float32) {
	panic(none)
}
func mulComplexAVX2(dr, di, ar, ai, br, bi *float32, n int)    { panic(none) }
func addMulComplexAVX2(dr, di, ar, ai, br, bi *float32, n int) { panic(none) }
func mulConjAVX2(dr, di, ar, ai, br, bi *float32, n int)       { panic(none) }
func addMulConjAVX2(dr, di, ar, ai, br, bi *float32, n int)    { panic(none) }
func dotAVX2(a, b *float32, n int) float32                     { panic(none) }
func expAVX2(dst, x *float32, n int)                           { panic(none) }
func sigmoidAVX2(dst, x *float32, n int)                       { panic(none) }

func gemm(c []float32, a, b operand, m, n, k int, add bool) { panic(none) }
