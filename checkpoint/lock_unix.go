//go:build unix

package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// canLock reports whether a folder is one of the system.
func canLock(f *Folder) bool { _, ok := f.disk.(systemDisk); return ok }

// lockFolder locks a file of a folder (flock), and writes into it who holds it.
func lockFolder(ctx context.Context, f *Folder, h Holder) (*Lock, error) {
	b, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	l := &folderLock{folder: f, holder: b}
	if l.file, err = l.take(ctx); err != nil {
		return nil, err
	}
	return &Lock{release: l.release, check: l.check}, nil
}

// A folderLock is a lock of a folder. It is of a file: if the folder is moved, the lock goes with it, and what is in its place is another run's to lock.
type folderLock struct {
	folder *Folder
	holder []byte // as it stands in the file

	mu   sync.Mutex // guards file
	file *os.File   // nil: the lock was given back
}

func (l *folderLock) path() string { return systemDisk(l.folder.dir).path(lockName) }

// take locks the file that has the name now.
func (l *folderLock) take(ctx context.Context) (*os.File, error) {
	if err := makeFolder(l.folder.dir); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(l.path(), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = held(holderOf(l.read(ctx)))
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.WriteAt(l.holder, 0)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// read returns what the file says; nil: nothing, or there is none.
func (l *folderLock) read(ctx context.Context) []byte {
	b, _ := readAll(ctx, l.folder, lockName, maxHolder) // who it is helps, but need not be known
	return b
}

func holderOf(b []byte) (h Holder) {
	_ = json.Unmarshal(b, &h)
	return h
}

// check looks whether the file that is locked still has its name. If the folder was moved or removed, or a copy of it is in its place, it locks what is
// there now; if that is another run's, also of one that has ended, the lock is lost.
func (l *folderLock) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return fs.ErrClosed
	}
	mine, err := l.file.Stat()
	if err != nil {
		return err
	}
	now, err := os.Stat(l.path())
	switch {
	case err == nil && os.SameFile(mine, now):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if there := l.read(context.Background()); err == nil && !bytes.Equal(there, l.holder) {
		return fmt.Errorf("%w; the folder %s was moved, removed or replaced since the run had it", held(holderOf(there)), l.folder)
	}
	file, err := l.take(context.Background())
	if err != nil {
		return err
	}
	_ = l.file.Close() // that of the other folder, which nobody writes to any more
	l.file = file
	return nil
}

// release gives the lock back. A second time it does nothing.
func (l *folderLock) release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
