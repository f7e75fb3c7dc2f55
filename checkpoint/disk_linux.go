package checkpoint

import "golang.org/x/sys/unix"

// renameNew is rename where no file has the other name; not all file systems can do that.
func renameNew(from, to string) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}
