// Package buffer works on slices that are used again and again: scratch memory
// that has the right length, and matrices by rows.
package buffer

// Sized returns x with length n, or a new slice if x is too small. Its contents
// mean nothing.
func Sized[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}

// Row returns row i of a matrix with rows of n elements. Appending to it does not
// reach the next one.
func Row[T any, I int | int32](x []T, i I, n int) []T {
	return x[int(i)*n : (int(i)+1)*n : (int(i)+1)*n]
}
