//go:build linux && !race

package tcp

import (
	"syscall"
	"unsafe"
)

// Sockets of this package never block, so the system is called without telling Go's scheduler,
// which would look after a call that takes longer than 20 µs, as to copy a frame does: it has
// another thread take the processor, and its monitor wake every 20 µs for the next
// millisecond. A goroutine cannot be stopped within such a call, as within a copy; atOnce bounds it. The race
// detector knows of what package syscall does only.
const atOnce = 512 << 10

// readSocket reads what is there, as syscall.Read.
func readSocket(fd uintptr, b []byte) (int, error) { return transfer(syscall.SYS_READ, fd, b) }

// writeSocket writes what there is room for, as syscall.Write.
func writeSocket(fd uintptr, b []byte) (int, error) { return transfer(syscall.SYS_WRITE, fd, b) }

func transfer(call, fd uintptr, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(min(len(b), atOnce)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
