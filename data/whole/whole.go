// Package whole writes files, and folders of files, that appear under their name
// when they are complete, and not at all otherwise: what was there stays as it was
// until then.
package whole

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// A File is being written, as a temporary file beside the one that it will be.
// It must be kept or dropped, and belongs to one goroutine.
type File struct {
	*bufio.Writer
	path string
	file *os.File // nil once it is kept or dropped
}

// Create begins a file. Its folder must exist.
func Create(path string) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, err
	}
	return &File{bufio.NewWriterSize(f, 1<<16), path, f}, nil
}

// Open reports whether the file is neither kept nor dropped.
func (f *File) Open() bool { return f.file != nil }

// Keep makes the file durable and gives it its name. After an error, which may be
// one of writing, nothing is left of it.
func (f *File) Keep() error {
	if f.file == nil {
		return os.ErrClosed
	}
	err := errors.Join(f.Flush(), f.file.Chmod(0o644), f.file.Sync(), f.file.Close())
	if err == nil {
		err = os.Rename(f.file.Name(), f.path)
	}
	if err != nil {
		_ = os.Remove(f.file.Name()) // it is of no use, and may be gone
	}
	f.file = nil
	return err
}

// Drop removes what was written. It does nothing to a file that was kept.
func (f *File) Drop() {
	if f.file == nil {
		return
	}
	_ = f.file.Close() // what is there is of no use
	_ = os.Remove(f.file.Name())
	f.file = nil
}

// Write makes a file of what write writes. If that returns an error, there is no
// file.
func Write(path string, write func(w io.Writer) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Drop()
	if err := write(f.Writer); err != nil {
		return err
	}
	return f.Keep()
}
