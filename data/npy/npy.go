// Package npy holds matrices of float32 in NumPy's file format .npy, version
// 1.0, so that trained tables can be opened by any tool that knows arrays.
//
// A file is one array of shape (rows, cols), little-endian float32, rows one
// after the other (C order):
//
//	offset  bytes  what
//	0       6      0x93 'N' 'U' 'M' 'P' 'Y'
//	6       2      version: 1, 0
//	8       2      n, the length of the header, little-endian
//	10      n      header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//	               then spaces and a line feed, so that 10+n is a multiple of 64
//	10+n    4·rows·cols  the values
//
// [Writer] and [Reader] stream rows and never hold the array. Other types,
// shapes, orders and versions are refused.
package npy

import "math"

const (
	magic     = "\x93NUMPY"
	preamble  = len(magic) + 2 + 2
	alignment = 64
	bufSize   = 1 << 16
)

// size returns the bytes of the values, and whether rows and cols are valid and
// the bytes can be counted.
func size(rows, cols int) (n int64, ok bool) {
	if rows < 0 || cols < 1 || cols > math.MaxInt32 || int64(rows) > math.MaxInt64/4/int64(cols)-bufSize {
		return 0, false
	}
	return 4 * int64(rows) * int64(cols), true
}
