package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Folder is a folder that is being written. Its files are written to a temporary
// folder beside the one that it will be, and Commit exchanges the two at once. A
// process that is killed leaves the old folder or the new one. The next CreateFolder of
// the same path removes the temporary folder that it left. (Where a file system cannot
// exchange two folders, there is no folder between two renames; if a process was killed
// there, the next CreateFolder puts the old folder back.)
//
// The folder must be one that can be renamed: not the current folder, and not where
// a file system is mounted. A Folder belongs to one goroutine and must be committed or
// aborted.
type Folder struct {
	dir  string // without symbolic links
	temp string // where it is written
	lock *os.File
	// replaceable says why an existing folder must not be replaced.
	replaceable func(dir string) error
}

// CreateFolder begins a folder that will be dir, which may exist if replaceable
// returns nil for it. It makes the folders above.
func CreateFolder(dir string, replaceable func(dir string) error) (*Folder, error) {
	real, err := resolve(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(real), 0o777); err != nil {
		return nil, err
	}
	s := &Folder{dir: real, replaceable: replaceable}
	if err := s.recover(); err != nil {
		return nil, err
	}
	if err := s.check(real); err != nil {
		return nil, err
	}
	return s, s.begin()
}

// resolve returns the absolute path of a folder to be, without symbolic links.
func resolve(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", fmt.Errorf("%s is a symbolic link to nothing", dir)
		}
		// What is there of the way to it may have links.
		if up := filepath.Dir(path); up != path {
			real, err = resolve(up)
			return filepath.Join(real, filepath.Base(path)), err
		}
	}
	return real, err
}

// check returns why no folder can be committed at a path; nil if one can.
func (s *Folder) check(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is a file, and a folder is wanted", dir)
	}
	if here, err := os.Getwd(); err == nil {
		if at, err := os.Stat(here); err == nil && os.SameFile(at, info) {
			return fmt.Errorf("%s is the current folder, which cannot be replaced as a whole: name a folder in it, such as %s", dir, filepath.Join(dir, "model"))
		}
	}
	if mounted(dir) {
		return fmt.Errorf("a file system is mounted at %s, which cannot be replaced as a whole: name a folder in it, such as %s", dir, filepath.Join(dir, "model"))
	}
	if err := writable(dir); err != nil {
		return fmt.Errorf("nothing may be written to %s: %w", dir, err)
	}
	return s.replaceable(dir)
}

const (
	unfinished = ".godwit-" // between the folder's name and what is random
	replaced   = ".old"     // behind the name of an unfinished one
)

func (s *Folder) prefix() string { return "." + filepath.Base(s.dir) + unfinished }

// begin makes the temporary folder, and locks it as long as this
// process writes to it.
func (s *Folder) begin() error {
	for range 10 {
		s.temp = filepath.Join(filepath.Dir(s.dir), s.prefix()+rand.Text()[:12])
		if err := os.Mkdir(s.temp, 0o777); err != nil {
			return err
		}
		f, err := os.Open(s.temp)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process took it for left behind
		}
		if err != nil {
			return err
		}
		s.lock = f
		if err := lock(f); !errors.Is(err, errLocked) && sameFolder(f, s.temp) {
			return nil // locked, or without locks, where nothing is taken for left behind
		}
		s.Abort()
	}
	return fmt.Errorf("the folders beside %s go away again and again", s.dir)
}

func sameFolder(f *os.File, path string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// recover removes what processes that were killed left beside the folder, or puts
// it back where the folder is missing since.
func (s *Folder) recover() error {
	up := filepath.Dir(s.dir)
	entries, err := os.ReadDir(up)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, isOld := strings.CutSuffix(e.Name(), replaced)
		if !strings.HasPrefix(name, s.prefix()) || !e.IsDir() || inUse(filepath.Join(up, name)) {
			continue
		}
		path := filepath.Join(up, e.Name())
		if _, err := os.Lstat(s.dir); isOld && errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(path, s.dir); err != nil {
				return err
			}
			continue
		}
		_ = os.RemoveAll(path) // what cannot be removed is in nobody's way
	}
	return nil
}

// errLocked is what lock returns if another process has the lock.
var errLocked = errors.New("locked by another process")

// inUse reports whether a process writes, or may write, to a folder.
func inUse(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close() // frees the lock
	return lock(f) != nil
}

// Path is where the file with a name is to be written.
func (s *Folder) Path(name string) string { return filepath.Join(s.temp, name) }

// Dir is the path that the folder will have.
func (s *Folder) Dir() string { return s.dir }

// Abort removes what was written. It does nothing to a folder that was committed.
func (s *Folder) Abort() {
	if s.lock == nil {
		return
	}
	_ = os.RemoveAll(s.temp) // the next CreateFolder removes what is left
	_ = s.lock.Close()
	s.lock = nil
}

// Commit gives the folder its path. Its files must be durable, as those of
// [File.Commit] are. After an error, the old folder is there again, and the new one is
// still to be aborted.
func (s *Folder) Commit() error {
	if s.lock == nil {
		return os.ErrClosed
	}
	if err := s.lock.Sync(); err != nil {
		return err
	}
	if err := s.check(s.dir); err != nil {
		return err
	}
	old, err := s.place()
	if err != nil {
		return err
	}
	if err := syncFolder(filepath.Dir(s.dir)); err != nil {
		return err
	}
	if old != "" {
		_ = os.RemoveAll(old) // the next CreateFolder removes what is left
	}
	err = s.lock.Close()
	s.lock = nil
	return err
}

// place gives the folder its path, and returns where the old one is now, if any.
func (s *Folder) place() (old string, err error) {
	info, err := os.Stat(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", os.Rename(s.temp, s.dir)
	}
	if err != nil {
		return "", err
	}
	if err := s.lock.Chmod(info.Mode().Perm()); err != nil {
		return "", err
	}
	takeOwner(s.lock, info)
	switch err := exchange(s.temp, s.dir); {
	case errors.Is(err, errors.ErrUnsupported):
		return s.placeByRenames()
	case err != nil:
		return "", &os.LinkError{Op: "exchange", Old: s.temp, New: s.dir, Err: err}
	}
	// A file may have come to the folder since it was looked at.
	if err := s.replaceable(s.temp); err != nil {
		return "", errors.Join(err, exchange(s.temp, s.dir))
	}
	return s.temp, nil
}

// placeByRenames is place where folders cannot be exchanged.
func (s *Folder) placeByRenames() (old string, err error) {
	old = s.temp + replaced
	if err := os.Rename(s.dir, old); err != nil {
		return "", err
	}
	if err = s.replaceable(old); err == nil {
		err = os.Rename(s.temp, s.dir)
	}
	if err != nil {
		return "", errors.Join(err, os.Rename(old, s.dir))
	}
	return old, nil
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// probeBytes is what Probe writes: more than a file system that is called full
// keeps for small files.
const probeBytes = 1 << 20

// Probe finds out whether a Folder could be committed as dir, by writing a part of
// one. It returns how many bytes are free there; -1 if that is not known.
func Probe(dir string, replaceable func(dir string) error) (free int64, err error) {
	s, err := CreateFolder(dir, replaceable)
	if err != nil {
		return 0, err
	}
	defer s.Abort()
	err = Write(s.Path("probe"), func(w io.Writer) error {
		_, err := w.Write(make([]byte, probeBytes))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("nothing can be written: %w", err)
	}
	return freeBytes(s.temp), nil
}
