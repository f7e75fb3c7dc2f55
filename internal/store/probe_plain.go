//go:build !amd64 || purego || race

package store

import (
	"unsafe"

	"github.com/godwit-ps/godwit"
)

// fast tells that there is no fastProbe. The race detector would not see what it reads.
const fast = false

func fastFetch(*godwit.Key, **Finder, int) {}

func fastProbe(*godwit.Key, **Finder, int, **unsafe.Pointer, *uintptr) {}
