//go:build !unix

package atomicfile

import (
	"errors"
	"os"
)

func lock(*os.File) error { return errors.ErrUnsupported }

func exchange(a, b string) error { return errors.ErrUnsupported }

func mounted(string) bool             { return false }
func writable(string) error           { return nil }
func takeOwner(*os.File, os.FileInfo) {}
func freeBytes(string) int64          { return -1 }
