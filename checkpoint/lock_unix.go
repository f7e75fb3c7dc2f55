//go:build unix

package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// canLock reports whether a folder is one of the system.
func canLock(f *Folder) bool { _, ok := f.disk.(systemDisk); return ok }

// lockFolder locks a file of a folder (flock), and writes into it who holds it.
func lockFolder(ctx context.Context, f *Folder, h Holder) (*Lock, error) {
	if err := makeFolder(f.dir); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(systemDisk(f.dir).path(lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		var other Holder
		if b, rerr := readAll(ctx, f, lockName, maxHolder); rerr == nil {
			_ = json.Unmarshal(b, &other) // who it is helps, but need not be known
		}
		err = held(other)
	}
	var b []byte
	if err == nil {
		b, err = json.Marshal(h)
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.WriteAt(b, 0)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Lock{release: sync.OnceValue(file.Close), check: func() error { return nil }}, nil
}
