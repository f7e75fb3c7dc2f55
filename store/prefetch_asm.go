//go:build amd64 || arm64

package store

import "unsafe"

// prefetch has the processor fetch the cache line at p. It reads nothing, so
// any address will do.
//
//go:noescape
func prefetch(p unsafe.Pointer)
