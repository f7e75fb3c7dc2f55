package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// holds checks what the only file of a folder, "a", holds.
func holds(t *testing.T, dir, want string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want == "" && len(files) == 0 {
		return
	}
	if len(files) != 1 || files[0].Name() != "a" {
		t.Errorf("the folder holds %v", files)
		return
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != want {
		t.Errorf("the file holds %.40q, %v, want %.40q", b, err, want)
	}
}

func TestAFileAppearsWhenItIsCommitted(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"new", "newer", strings.Repeat("a long text", 1<<15)} {
		f, err := Create(filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if !f.Open() {
			t.Error("a file that is written is not open")
		}
		if _, err := os.ReadFile(filepath.Join(dir, "a")); text == "new" && err == nil {
			t.Error("the file is there before it is complete")
		}
		if err := f.Commit(); err != nil || f.Open() {
			t.Errorf("committing: %v, open %v", err, f.Open())
		}
		f.Abort()
		holds(t, dir, text)
		if err := f.Commit(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("committing twice: %v", err)
		}
	}
}

func TestAFileThatIsAbortedLeavesTheOldOne(t *testing.T) {
	dir := t.TempDir()
	for _, old := range []string{"", "old"} {
		if old != "" {
			if err := os.WriteFile(filepath.Join(dir, "a"), []byte(old), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		f, err := Create(filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("new"); err != nil {
			t.Fatal(err)
		}
		f.Abort()
		f.Abort()
		holds(t, dir, old)
		no := errors.New("no")
		if err := Write(filepath.Join(dir, "a"), func(w io.Writer) error {
			_, _ = io.WriteString(w, "half")
			return no
		}); !errors.Is(err, no) {
			t.Errorf("the error is %v", err)
		}
		holds(t, dir, old)
	}
}

func TestAnErrorOfWritingIsToldAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.file.Close(); err != nil { // as a disk that fails
		t.Fatal(err)
	}
	_, _ = f.WriteString("lost")
	if err := f.Commit(); err == nil || f.Open() {
		t.Errorf("committing what could not be written: %v", err)
	}
	holds(t, dir, "")
	if _, err := Create(filepath.Join(dir, "no", "folder")); err == nil {
		t.Error("a file was begun in a folder that is not there")
	}
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "a"), func(io.Writer) error { return nil }); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("the folder holds %v, %v", files, err)
	}
}
