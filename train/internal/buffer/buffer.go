// Package buffer handles slices that are reused: scratch memory of a wanted length, and
// rows of matrices.
package buffer

// Sized returns x with length n, or a new slice if x is too small. Its contents
// are undefined.
func Sized[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}

// Row returns row i of a matrix with rows of n elements. Its capacity ends
// with the row.
func Row[T any, I int | int32](x []T, i I, n int) []T {
	return x[int(i)*n : (int(i)+1)*n : (int(i)+1)*n]
}
