//go:build unix

package arena

import "golang.org/x/sys/unix"

// take gets zeroed memory from the system.
func take(bytes int) ([]byte, error) {
	return unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// give gives memory back to the system.
func give(m []byte) error { return unix.Munmap(m) }
