//go:build unix && (!linux || race)

package tcp

import "syscall"

// readSocket reads what is there.
func readSocket(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

// writeSocket writes what there is room for.
func writeSocket(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) }
