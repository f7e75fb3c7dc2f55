package atomicfile

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// exchange exchanges two folders at once. The error is errors.ErrUnsupported where
// the file system cannot.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}

// mounted reports whether a file system, or a part of one, is mounted at a folder.
func mounted(dir string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, 0, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// freeBytes is how many bytes may be written to the file system of a folder; -1 if
// that is not known.
func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return -1
	}
	return int64(min(uint64(st.Bavail)*uint64(st.Bsize), math.MaxInt64))
}
