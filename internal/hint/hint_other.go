//go:build !amd64 && !arm64

package hint

import "unsafe"

// Read does nothing.
func Read(unsafe.Pointer, uintptr) {}

// Write does nothing.
func Write(unsafe.Pointer, uintptr) {}

// ReadEach does nothing.
func ReadEach(*unsafe.Pointer, int, uintptr) {}

// Wait does nothing.
func Wait() {}
