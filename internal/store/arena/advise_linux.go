package arena

import "golang.org/x/sys/unix"

// advise asks for pages of 2 MiB: rows are accessed at random, and there are more pages of
// 4 KiB than a processor finds at once. A kernel that has none to give says so or does
// nothing. And it keeps the memory from children of this process: one that was forked
// could only read rows that are out of date, and each page that the parent changes would
// be copied for it.
func advise(m []byte) {
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE)
	_ = unix.Madvise(m, unix.MADV_DONTFORK)
}
