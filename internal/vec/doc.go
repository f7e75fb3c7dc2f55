// Package vec is the arithmetic on vectors and matrices of float32.
//
// Each function is first a plain Go loop, in plain.go, which says what it
// computes. On amd64 processors with AVX2 and FMA, found when the program
// starts, and on all arm64 processors (NEON) generated assembly does the same
// faster; everywhere else, and with the build tag purego, the loops run. With
// AVX-512, matrix products and exponentials have other kernels. The other
// functions have none: those that were tried wait for memory, or for divisions and
// roots, and gained little or lost by it.
//
// What the arm64 kernels compute is tested, on an emulated processor where there
// is no real one ("make arm64"). Their speed has been measured on none.
//
// # Same bits everywhere, and where not
//
// The elementwise functions, [Exp] and [Sigmoid] included, give the same bits
// with assembly and without it, on every processor: each operation is rounded
// on its own, none is fused. Only the bits of a NaN are not determined. So a
// row that nodes of different kinds update the same way stays the same row.
//
// The functions that sum ([Dot], [SquaredNorm], [ExpSum], [MulABt], [MulAB],
// [AddMulAB], [AddMulAtB]) do so in an order that depends on the length and the processor.
// A sum of n products differs from the exact one by at most about n·2⁻²⁴
// times the sum of the products' magnitudes.
//
// # Lengths and overlap
//
// Vectors that are used together must have equal lengths, and matrices exactly
// the elements that their dimensions say; anything else is a mistake of the
// caller's program, not of its data, and panics before anything is written.
// Length zero is fine everywhere. The destination may be the same slice as a
// source of an elementwise function, but slices must not overlap otherwise,
// and a matrix product's destination must not overlap its factors.
//
// All functions are safe for concurrent use on different destinations and
// allocate nothing, but for work space of the matrix products, which is reused.
package vec
