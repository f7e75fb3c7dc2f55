//go:build unix

package atomicfile

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lock locks an open folder until it is closed. The error is errLocked if another
// process has; others are those of a file system without locks.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }

// takeOwner gives a folder the owner of another one, where this process may.
func takeOwner(f *os.File, of os.FileInfo) {
	if st, ok := of.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid)) // only root may, and need not
	}
}
