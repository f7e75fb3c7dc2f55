package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// evict has the system drop what it has in memory of a file.
func evict(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
}
