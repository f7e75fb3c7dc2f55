//go:build unix

package atomicfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Others read a file if the user has them read new files.
func TestTheUmaskDecidesWhoReadsAFile(t *testing.T) {
	for _, umask := range []int{0o077, 0o022, 0o002} {
		dir := t.TempDir()
		was := syscall.Umask(umask)
		f, err := Create(filepath.Join(dir, "a"))
		syscall.Umask(was)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Commit(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "a"))
		if want := os.FileMode(0o666 &^ umask); err != nil || info.Mode().Perm() != want {
			t.Errorf("umask %o: %v, %v, want mode %o", umask, info, err, want)
		}
	}
}
