package server

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// A process that is killed cannot remove the temporary folder of its server. So
// the next one does that starts a server here. It knows by a lock, which ends with
// its process however that ends, whether a folder is of use to anybody:
//
//	create the folder; create and lock the file owner; write into it
//
// Who finds a folder takes its lock, if it is free, and removes the folder unless
// the file is empty. An empty one belongs to somebody who is between the first and
// the last of these steps, and waits for the lock at most until it was looked at.
const (
	tempPrefix = "godwit-etcd-"
	ownerFile  = "owner"
	dataFolder = "data"
)

// temporary is a folder of a server that is to leave nothing behind.
type temporary struct {
	dir  string
	lock *fileutil.LockedFile
}

// newTemporary makes a folder, and removes those that others left.
func newTemporary() (*temporary, error) {
	sweep(os.TempDir())
	dir, err := os.MkdirTemp("", tempPrefix)
	if err != nil {
		return nil, fmt.Errorf("a folder for its data: %w: set TMPDIR to one that can be written to", err)
	}
	t := &temporary{dir: dir}
	if t.lock, err = fileutil.LockFile(filepath.Join(dir, ownerFile), os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		_, err = fmt.Fprintln(t.lock, os.Getpid()) // to be read by people, and to be there
	}
	if err != nil {
		_ = t.remove()
		return nil, err
	}
	return t, nil
}

// data is the folder for the server's data.
func (t *temporary) data() string { return filepath.Join(t.dir, dataFolder) }

// remove removes the folder. There is nothing to remove of nil.
func (t *temporary) remove() error {
	if t == nil {
		return nil
	}
	err := os.RemoveAll(t.dir)
	if t.lock != nil {
		_ = t.lock.Close() // there is nothing to lock any more
	}
	return err
}

// sweep removes the folders of processes that ended without doing so. What
// cannot be removed, such as the folders of other users, stays: that is no reason
// not to start.
func sweep(in string) {
	found, _ := filepath.Glob(filepath.Join(in, tempPrefix+"*", ownerFile)) // the pattern is good
	for _, owner := range found {
		lock, err := fileutil.TryLockFile(owner, os.O_RDWR, 0)
		if err != nil {
			continue // somebody has it
		}
		if info, err := lock.Stat(); err == nil && info.Size() > 0 {
			_ = os.RemoveAll(filepath.Dir(owner))
		}
		_ = lock.Close()
	}
}
