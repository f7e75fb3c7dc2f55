package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
)

// A faultyDisk is a disk in memory that loses what was not made durable, and fails when it is told to. It belongs to one
// goroutine.
//
//   - What was written and not synced is lost by a crash, in part or whole.
//   - Names that were given and not synced are there after a crash or not, each by itself: renames may be reordered.
//   - A sync that fails has lost what it should have made durable, although it can still be read; the next sync does not say so.
type faultyDisk struct {
	rng     *rand.Rand
	names   map[string]*inode
	durable map[string]*inode
	changed map[string]bool // names since the last Sync
	ops     int
	failAt  int   // the operation that fails; 0: none
	err     error // with this
	crashed bool  // whether all later ones fail too
	noLinks bool  // whether files have one name only
}

type inode struct {
	data    []byte
	durable []byte
	lost    bool // a sync failed: the data are in memory only
}

var errCrash = errors.New("the machine stopped")

func newFaultyDisk(rng *rand.Rand) *faultyDisk {
	return &faultyDisk{rng: rng, names: map[string]*inode{}, durable: map[string]*inode{}, changed: map[string]bool{}}
}

// op counts an operation, and returns how it fails.
func (d *faultyDisk) op() error {
	d.ops++
	if d.crashed || d.failAt == d.ops {
		d.crashed = d.err == errCrash
		return d.err
	}
	return nil
}

// restart returns the disk after a crash.
func (d *faultyDisk) restart() *faultyDisk {
	n := newFaultyDisk(d.rng)
	n.noLinks = d.noLinks
	after := maps.Clone(d.durable)
	for name := range d.changed {
		if d.rng.IntN(2) == 0 {
			continue
		}
		if i, ok := d.names[name]; ok {
			after[name] = i
		} else {
			delete(after, name)
		}
	}
	for name, i := range after {
		data := i.durable
		if len(i.data) > len(data) { // some of what was not synced may be there
			data = slices.Concat(data, i.data[len(data):][:d.rng.IntN(len(i.data)-len(data)+1)])
			if d.rng.IntN(2) == 0 { // or only its length
				clear(data[len(i.durable):])
			}
		}
		n.names[name] = &inode{data: slices.Clone(data), durable: slices.Clone(data)}
	}
	n.durable = maps.Clone(n.names)
	return n
}

func (d *faultyDisk) Unique() string { return fmt.Sprint(d.rng.Uint32()) }

func (d *faultyDisk) Create(name string) (file, error) {
	if err := d.op(); err != nil {
		return nil, err
	}
	if d.names[name] != nil {
		return nil, fs.ErrExist
	}
	i := &inode{}
	d.names[name], d.changed[name] = i, true
	return &faultyFile{d, i}, nil
}

type faultyFile struct {
	d *faultyDisk
	i *inode
}

func (f *faultyFile) Write(b []byte) (int, error) {
	if err := f.d.op(); err != nil {
		n := f.d.rng.IntN(len(b) + 1)
		f.i.data = append(f.i.data, b[:n]...)
		return n, err
	}
	f.i.data = append(f.i.data, b...)
	return len(b), nil
}

func (f *faultyFile) Sync() error {
	if err := f.d.op(); err != nil {
		f.i.lost = true
		return err
	}
	if !f.i.lost {
		f.i.durable = slices.Clone(f.i.data)
	}
	return nil
}

func (f *faultyFile) Close() error { return f.d.op() }

func (d *faultyDisk) Read(name string, off, n int64) (io.ReadCloser, error) {
	i := d.names[name]
	if i == nil {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(io.NewSectionReader(bytes.NewReader(i.data), off, n)), nil
}

func (d *faultyDisk) Size(name string) (int64, error) {
	if i := d.names[name]; i != nil {
		return int64(len(i.data)), nil
	}
	return 0, fs.ErrNotExist
}

func (d *faultyDisk) Rename(from, to string) error {
	if err := d.op(); err != nil {
		return err
	}
	if d.names[from] == nil {
		return fs.ErrNotExist
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	d.changed[from], d.changed[to] = true, true
	return nil
}

func (d *faultyDisk) Link(from, to string) error {
	if err := d.op(); err != nil {
		return err
	}
	if d.noLinks {
		return errors.ErrUnsupported
	}
	switch {
	case d.names[from] == nil:
		return fs.ErrNotExist
	case d.names[to] != nil:
		return fs.ErrExist
	}
	d.names[to], d.changed[to] = d.names[from], true
	return nil
}

func (d *faultyDisk) RenameNew(_, _ string) error {
	if err := d.op(); err != nil {
		return err
	}
	return errors.ErrUnsupported
}

func (d *faultyDisk) Remove(name string) error {
	if err := d.op(); err != nil {
		return err
	}
	if d.names[name] == nil {
		return fs.ErrNotExist
	}
	delete(d.names, name)
	d.changed[name] = true
	return nil
}

func (d *faultyDisk) List() (all []Object, err error) {
	for name, i := range d.names {
		all = append(all, Object{name, int64(len(i.data))})
	}
	return all, nil
}

func (d *faultyDisk) Sync() error {
	if err := d.op(); err != nil {
		return err
	}
	d.durable = maps.Clone(d.names)
	clear(d.changed)
	return nil
}

var (
	faultSeed = flag.Uint64("faults.seed", 0, "of the first injected fault; 0: a random one")
	faults    = flag.Int("faults", 1000, "how many faults to inject")
)

// Each fault is injected while checkpoints, with all rows and with those that changed, are written and pruned: an error, or a crash of the
// machine. Whatever it was, the last checkpoint that was acknowledged, or a later one, is whole; and after
// an error the next attempt succeeds.
func TestNoFaultLeavesAnUnusableFolder(t *testing.T) {
	first := *faultSeed
	if first == 0 {
		first = rand.Uint64()
	}
	ended := map[string]int{}
	for i := range *faults {
		seed := first + uint64(i)
		how, err := oneFault(t.Context(), rand.New(rand.NewPCG(seed, 3)))
		if err != nil {
			t.Fatalf("-faults.seed %d: %v", seed, err)
		}
		ended[how]++
	}
	t.Logf("%d faults: %v", *faults, ended)
	if ended["crash, the former one"] == 0 || ended["crash, the new one"] == 0 || ended["error"] == 0 {
		t.Errorf("not all kinds of faults were met: %v", ended)
	}
}

// oneFault writes checkpoints until a fault, looks at what is left, and writes on. It
// returns how it went.
func oneFault(ctx context.Context, rng *rand.Rand) (how string, err error) {
	d := newFaultyDisk(rng)
	d.noLinks = rng.IntN(4) == 0
	f := &Folder{dir: "memory", disk: d}
	var models []model
	var acknowledged uint64
	var last *Manifest        // the one that the next one may build on
	attempt := func() error { // to write the next checkpoint and to prune
		n, err := Next(ctx, f)
		if err != nil {
			return err
		}
		on, changes := last, newModel(rng, 20)
		if rng.IntN(3) == 0 {
			on = nil
		}
		m := changes
		if on != nil {
			m = models[on.Number-1].with(changes)
		}
		last = nil                       // after an attempt that failed, all rows are written
		models = append(models[:n-1], m) // of a failed attempt, the manifest may be there after a crash
		if last, err = saveOn(ctx, rng, f, on, NewID(n), changes, 1+rng.IntN(2), map[string][]byte{"s": {byte(n)}}); err != nil {
			return err
		}
		acknowledged = n
		_, err = alone.Prune(ctx, f, 1+rng.IntN(2))
		return err
	}
	if err := attempt(); err != nil {
		return "", err
	}
	d.failAt = d.ops + 1 + rng.IntN(45)
	d.err = []error{errCrash, errCrash, syscall.EIO, syscall.ENOSPC}[rng.IntN(4)]
	for err = nil; err == nil; {
		err = attempt()
	}
	if !errors.Is(err, d.err) {
		return "", fmt.Errorf("%w, want %w", err, d.err)
	}
	how = "error"
	crash := errors.Is(err, errCrash) || rng.IntN(2) == 0 // errors of disks are followed by crashes
	if crash {
		d = d.restart()
		f.disk = d
	}
	n, err := whole(ctx, f, models, acknowledged)
	if err != nil {
		return "", err
	}
	if crash {
		how = "crash, the former one"
		if n == uint64(len(models)) {
			how = "crash, the new one"
		}
	}
	d.failAt = 0
	if err := attempt(); err != nil {
		return "", fmt.Errorf("writing on: %w", err)
	}
	f.disk = d.restart()
	_, err = whole(ctx, f, models, acknowledged)
	return how, err
}

// whole checks that the last checkpoint is at least the one that was acknowledged, and that it is what was written.
func whole(ctx context.Context, f *Folder, models []model, acknowledged uint64) (uint64, error) {
	c, err := Open(ctx, f, 0)
	if err != nil {
		return 0, err
	}
	n := c.Manifest().Number
	if n < acknowledged {
		return 0, fmt.Errorf("checkpoint %d was acknowledged, and %d is the last", acknowledged, n)
	}
	if _, err := c.Verify(ctx); err != nil {
		return 0, err
	}
	m, err := read(ctx, c, nil)
	if err == nil && !m.equal(models[n-1]) {
		err = fmt.Errorf("checkpoint %d has other rows than were written", n)
	}
	return n, err
}
