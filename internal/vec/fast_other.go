//go:build (!amd64 && !arm64) || purego

package vec

// They are false: there are no kernels here. Calls of them stand behind it and
// are dropped by the compiler; the declarations below only give them a type.
const fast, wide = false, false

// lanes counts for nothing without kernels.
const lanes, wideLanes = 1, 1

const none = "vec: no fast kernels in this build"

func fastAdd(dst, x *float32, n int)                                { panic(none) }
func fastSub(dst, x *float32, n int)                                { panic(none) }
func fastAXPY(dst *float32, a float32, x *float32, n int)           { panic(none) }
func fastScale(dst *float32, a float32, n int)                      { panic(none) }
func fastMul(dst, a, b *float32, n int)                             { panic(none) }
func fastAddMul(dst, a, b *float32, n int)                          { panic(none) }
func fastDelta(dst, val, sub *float32, n int) bool                  { panic(none) }
func fastAdaGrad(value, acc, grad *float32, n int, lr, eps float32) { panic(none) }
func fastMulRoot(x, acc *float32, n int, eps float32)               { panic(none) }
func fastAddDivRoot(dst, acc, x *float32, n int, eps float32)       { panic(none) }
func fastAdam(value, m, v, grad *float32, n int, lr, b1, b2, eps, c1, c2, limit float32) {
	panic(none)
}
func fastTopicOdds(dst, weight, word *float32, n int, beta float32) {
	panic(none)
}
func fastPairStep(p, q *float32, n int, keep, by float32)      { panic(none) }
func fastMulComplex(dr, di, ar, ai, br, bi *float32, n int)    { panic(none) }
func fastAddMulComplex(dr, di, ar, ai, br, bi *float32, n int) { panic(none) }
func fastMulConj(dr, di, ar, ai, br, bi *float32, n int)       { panic(none) }
func fastAddMulConj(dr, di, ar, ai, br, bi *float32, n int)    { panic(none) }
func fastAddMulModulus(dr, di, ar, ai *float32, n int, by float32) {
	panic(none)
}
func fastMax(x *float32, n int) float32                  { panic(none) }
func fastExpSum(x *float32, n int, less float32) float32 { panic(none) }
func fastDot(a, b *float32, n int) float32               { panic(none) }
func fastExp(dst, x *float32, n int)                     { panic(none) }
func fastSigmoid(dst, x *float32, n int)                 { panic(none) }
func wideExp(dst, x *float32, n int)                     { panic(none) }
func wideSigmoid(dst, x *float32, n int)                 { panic(none) }
func wideExpSum(x *float32, n int, less float32) float32 { panic(none) }

func gemm(c []float32, a, b operand, m, n, k int, add bool) { panic(none) }
