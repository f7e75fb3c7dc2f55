//go:build unix

package export

import (
	"strings"
	"syscall"
	"testing"
)

// Opening a pipe would wait for somebody who writes to it.
func TestAPipeIsNoFileOfAnExport(t *testing.T) {
	dir := small(t)
	replace(t, dir, "a.txt", func(path string) error { return syscall.Mkfifo(path, 0o666) })
	src, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Lines("a.txt"); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Errorf("a pipe: %v", err)
	}
}
