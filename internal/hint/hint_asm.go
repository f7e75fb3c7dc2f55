//go:build amd64 || arm64

package hint

import "unsafe"

// Read has the processor fetch the cache lines from p on that hold at least the
// given number of bytes, 1 or more. It reads nothing, so any address will do.
//
//go:noescape
func Read(p unsafe.Pointer, bytes uintptr)

// Write is Read of memory that will be written: lines that another processor has
// written are taken from it at once, instead of being shared first.
//
//go:noescape
func Write(p unsafe.Pointer, bytes uintptr)

// ReadEach is Read of as many bytes from each of n addresses, the first of which is at p.
// Those that are nil are skipped. One call for many costs less than one for each. On amd64 the
// lines come as near as the second cache, to which more of them are under way at a time.
//
//go:noescape
func ReadEach(p *unsafe.Pointer, n int, bytes uintptr)

// Wait is for loops that wait for another processor: it takes about as long as
// a line needs to come from there, and leaves the memory in peace meanwhile.
//
//go:noescape
func Wait()
