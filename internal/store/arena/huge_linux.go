package arena

import "golang.org/x/sys/unix"

// hugePages asks for pages of 2 MiB: rows are accessed at random, and there
// are more pages of 4 KiB than a processor finds at once. A kernel that has
// none to give says so or does nothing.
func hugePages(m []byte) { _ = unix.Madvise(m, unix.MADV_HUGEPAGE) }
