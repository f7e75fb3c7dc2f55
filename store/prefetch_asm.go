//go:build amd64 || arm64

package store

import "unsafe"

// prefetch has the processor fetch the cache lines from p on that hold at least
// the given number of bytes, 1 or more. It reads nothing, so any address will do.
//
//go:noescape
func prefetch(p unsafe.Pointer, bytes uintptr)
