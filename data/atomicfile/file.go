// Package atomicfile writes files, and folders of files, atomically: they appear under
// their name when they are complete, or not at all. Until then, an older file or folder
// of the name stays as it was.
package atomicfile

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// A File is being written, as a temporary file beside the one that it will be.
// It must be committed or aborted, and belongs to one goroutine.
type File struct {
	*bufio.Writer
	path string
	file *os.File // nil once it is committed or aborted
}

// Create begins a file. Its folder must exist.
func Create(path string) (*File, error) {
	// The user's umask decides who may read it, which os.CreateTemp passes over.
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-"+rand.Text()[:12])
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &File{bufio.NewWriterSize(f, 1<<16), path, f}, nil
}

// Open reports whether the file is neither committed nor aborted.
func (f *File) Open() bool { return f.file != nil }

// Commit makes the file durable and gives it its name. After an error, which may be
// one of writing, nothing is left of it.
func (f *File) Commit() error {
	if f.file == nil {
		return os.ErrClosed
	}
	err := errors.Join(f.Flush(), f.file.Sync(), f.file.Close())
	if err == nil {
		err = os.Rename(f.file.Name(), f.path)
	}
	if err != nil {
		_ = os.Remove(f.file.Name()) // it is of no use, and may be gone
	}
	f.file = nil
	return err
}

// Abort removes what was written. It does nothing to a file that was committed.
func (f *File) Abort() {
	if f.file == nil {
		return
	}
	_ = f.file.Close() // what is there is of no use
	_ = os.Remove(f.file.Name())
	f.file = nil
}

// Write creates a file with what write writes. If write returns an error, no file
// appears.
func Write(path string, write func(w io.Writer) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f.Writer); err != nil {
		return err
	}
	return f.Commit()
}
