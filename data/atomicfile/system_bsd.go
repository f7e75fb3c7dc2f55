//go:build unix && !linux

package atomicfile

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func exchange(a, b string) error { return errors.ErrUnsupported }

// mounted reports whether a file system is mounted at a folder.
func mounted(dir string) bool {
	var st, up unix.Stat_t
	return unix.Stat(dir, &st) == nil && unix.Stat(filepath.Dir(dir), &up) == nil && st.Dev != up.Dev
}

func freeBytes(string) int64 { return -1 }
