package checkpoint

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// systemDisk is a folder of the system. Files are opened below it only, also where there are
// symbolic links.
type systemDisk string

// unique is part of the names of files under way.
var unique = rand.Text()[:8]

func (systemDisk) Unique() string { return unique }

func (d systemDisk) path(name string) string { return filepath.Join(string(d), name) }

// Create makes a file, and the folder where it is the first.
func (d systemDisk) Create(name string) (file, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(d.path(name), flags, 0o644)
	if errors.Is(err, os.ErrNotExist) {
		if err := makeFolder(string(d)); err != nil {
			return nil, err
		}
		f, err = os.OpenFile(d.path(name), flags, 0o644)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// makeFolder makes a folder and those above it, durably.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	up := filepath.Dir(dir)
	if err := makeFolder(up); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return systemDisk(up).Sync()
}

func (d systemDisk) Sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Read opens a regular file: opening a pipe would wait.
func (d systemDisk) Read(name string, off, n int64) (io.ReadCloser, error) {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, err
	}
	defer root.Close() // files that are open stay so
	if info, err := root.Stat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", d.path(name))
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, off, n), f}, nil
}

func (d systemDisk) Size(name string) (int64, error) {
	info, err := os.Stat(d.path(name))
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", d.path(name))
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (d systemDisk) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

// Link takes all errors but one for those of a file system that has no hard links: these have many. If it was another, Rename has
// it, too.
func (d systemDisk) Link(from, to string) error {
	err := os.Link(d.path(from), d.path(to))
	if err != nil && !errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// RenameNew takes EINVAL for the answer of a file system that has no such rename: the names are good.
func (d systemDisk) RenameNew(from, to string) error {
	err := renameNew(d.path(from), d.path(to))
	if errors.Is(err, syscall.EINVAL) {
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

func (d systemDisk) Remove(name string) error { return os.Remove(d.path(name)) }

func (d systemDisk) List() (all []Object, err error) {
	entries, err := os.ReadDir(string(d))
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() { // else it is gone, or somebody else's
			all = append(all, Object{e.Name(), info.Size()})
		}
	}
	return all, err
}
