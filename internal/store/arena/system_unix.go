//go:build unix

package arena

import "golang.org/x/sys/unix"

// take gets zeroed memory from the system.
func take(bytes int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil {
		advise(m)
	}
	return m, err
}

// give gives memory back to the system. It may still be read.
func give(m []byte) error { return unix.Madvise(m, unix.MADV_DONTNEED) }

// unmap gives addresses back to the system.
func unmap(m []byte) { _ = unix.Munmap(m) }
