package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// A Folder is a [Store] in a folder of a file system. If several nodes write, all of them must see the
// same folder.
//
// A file is written beside its name, made durable (fsync), given its name, and then the folder is made durable. So
// a kill, or a machine that stops, leaves a file whole or not at all, and the manifest is never there before the parts.
// When a file cannot be made durable, it is removed and never tried again: what was not written may be lost by
// the system without another error.
//
// Of several processes that create a file of one name at the same time, one succeeds. It takes a file system with hard
// links, or one on Linux or macOS that renames a file only if the other name is free (FAT, say); on others, those that look for the file
// before it is there all succeed.
type Folder struct {
	dir  string
	disk disk
	temp atomic.Int64 // names of files under way
}

// OpenFolder opens a folder. It need not exist: the first write makes it.
func OpenFolder(dir string) (*Folder, error) {
	if dir == "" { // such as of a variable that is not set: its checkpoints would be those of whatever folder this is
		return nil, errors.New("checkpoint: the place is empty: want a folder (. is this one) or a URL")
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return &Folder{dir: path, disk: systemDisk(path)}, nil
}

// String implements [Store].
func (f *Folder) String() string { return f.dir }

// underway begins the name of a file that does not have its own yet.
const underway = ".godwit-"

// Create implements [Store].
func (f *Folder) Create(ctx context.Context, name string, write func(w io.Writer) error) error {
	if err := f.absent(name); err != nil { // else it would be written in vain
		return err
	}
	return f.write(ctx, name, write, f.once)
}

// absent returns an error if there is a file of a name; it wraps fs.ErrExist.
func (f *Folder) absent(name string) error {
	_, err := f.disk.Size(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		return fmt.Errorf("%s: %w", name, fs.ErrExist)
	}
	return err
}

// once gives a file its name, unless another one has it.
func (f *Folder) once(temp, name string) error {
	err := f.disk.Link(temp, name)
	if errors.Is(err, errors.ErrUnsupported) {
		return f.renameOnce(temp, name)
	}
	if err != nil {
		return err
	}
	if err = f.disk.Remove(temp); err != nil {
		_ = f.disk.Remove(name) // it is this one's
	}
	return err
}

// renameOnce is once where files have one name only.
func (f *Folder) renameOnce(temp, name string) error {
	err := f.disk.RenameNew(temp, name)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := f.absent(name); err != nil {
		return err
	}
	return f.disk.Rename(temp, name)
}

// Put implements [Store].
func (f *Folder) Put(ctx context.Context, name string, b []byte) error {
	return f.write(ctx, name, func(w io.Writer) error { _, err := w.Write(b); return err }, f.disk.Rename)
}

// write writes a file beside its name, and has give give it that one.
func (f *Folder) write(ctx context.Context, name string, write func(w io.Writer) error, give func(temp, name string) error) error {
	temp := fmt.Sprintf("%s%s-%s-%d", underway, name, f.disk.Unique(), f.temp.Add(1))
	err := f.fill(temp, write)
	if err == nil {
		if err = context.Cause(ctx); err == nil {
			err = give(temp, name)
		}
	}
	if err != nil {
		_ = f.disk.Remove(temp) // it is of no use, and may not be there
		return err
	}
	if err = f.disk.Sync(); err != nil {
		// It may be there after a crash or not. It must not be named.
		_ = f.disk.Remove(name)
	}
	return err
}

// fill writes a file and makes it durable.
func (f *Folder) fill(temp string, write func(w io.Writer) error) error {
	created, err := f.disk.Create(temp)
	if err != nil {
		return err
	}
	file := &durable{file: created}
	b := bufio.NewWriterSize(file, 1<<16)
	err = write(b)
	if err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return err
}

// Read implements [Store].
func (f *Folder) Read(_ context.Context, name string, off, n int64) (io.ReadCloser, error) {
	return f.disk.Read(name, off, n)
}

// Size implements [Store].
func (f *Folder) Size(_ context.Context, name string) (int64, error) { return f.disk.Size(name) }

// List implements [Store].
func (f *Folder) List(_ context.Context, prefix string) ([]Object, error) {
	all, err := f.disk.List()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var some []Object
	for _, o := range all {
		if strings.HasPrefix(o.Name, prefix) {
			some = append(some, o)
		}
	}
	return some, err
}

// Remove implements [Store].
func (f *Folder) Remove(_ context.Context, name string) error {
	if err := f.disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Clean implements [Store].
func (f *Folder) Clean(ctx context.Context) (n int, err error) {
	left, err := f.List(ctx, underway)
	for _, o := range left {
		err = errors.Join(err, f.Remove(ctx, o.Name))
	}
	return len(left), err
}

// A disk is the folder of a file system: what a Folder needs of it, so that tests can put faults there.
type disk interface {
	Create(name string) (file, error) // a new file
	Read(name string, off, n int64) (io.ReadCloser, error)
	Size(name string) (int64, error) // of a regular file
	Rename(from, to string) error    // replaces
	// Link gives a file a second name. The error wraps fs.ErrExist if that is taken, and errors.ErrUnsupported if
	// files have one name only.
	Link(from, to string) error
	// RenameNew is Rename to a name that no file has. The error wraps fs.ErrExist if one has it, and errors.ErrUnsupported if
	// the file system cannot do that in one step.
	RenameNew(from, to string) error
	Remove(name string) error
	List() ([]Object, error) // the regular files
	Sync() error             // makes names durable
	Unique() string          // part of names that no other process uses
}

// A file is being written.
type file interface {
	io.WriteCloser
	Sync() error
}

// A durable file is made durable while it is written, so that little is left to be done at its end.
type durable struct {
	file
	begun int64      // bytes that were written since the last sync began
	sync  chan error // the end of that one, if it was not seen; nil: it was, or there was none
	err   error      // of a sync: there is no other one
}

// A file is made durable each time that so many bytes were written.
const syncEvery = 32 << 20

// Write begins to make the file durable if enough was written, unless that is still under way.
func (d *durable) Write(b []byte) (int, error) {
	n, err := d.file.Write(b)
	if d.begun += int64(n); err != nil || d.begun < syncEvery {
		return n, err
	}
	if d.sync != nil {
		select {
		case d.err = <-d.sync:
			d.sync = nil
		default:
			return n, nil
		}
	}
	if d.err != nil {
		return n, d.err
	}
	d.begun, d.sync = 0, make(chan error, 1)
	go func(done chan<- error) { done <- d.file.Sync() }(d.sync)
	return n, nil
}

// rest waits for the sync that is under way.
func (d *durable) rest() error {
	if d.sync != nil {
		d.err, d.sync = <-d.sync, nil
	}
	return d.err
}

// Sync makes the whole file durable.
func (d *durable) Sync() error {
	if err := d.rest(); err != nil {
		return err
	}
	return d.file.Sync()
}

// Close closes the file, when no sync is under way any more.
func (d *durable) Close() error {
	err := d.rest()
	if cerr := d.file.Close(); err == nil {
		err = cerr
	}
	return err
}
