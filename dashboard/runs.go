package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-ps/godwit/dashboard/internal/index"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// runs are the runs of a folder. Those that are looked at are read; two at a time, because an index takes memory.
type runs struct {
	dir  string
	live bool
	ctx  context.Context
	stop context.CancelFunc

	mu    sync.Mutex
	known map[string]folder // by path
	open  []*run            // the last one that was asked for comes last
	errs  []error
}

const mostOpen = 2

// How often files are looked at, and how long a run counts as live in which nothing happens.
const (
	pollEvery  = 250 * time.Millisecond
	liveFor    = 10 * time.Second
	openWithin = 2 * time.Second // a run is begun to be read, if it can be
	lateAfter  = 3 * time.Second // a node that has not begun is not waited for
)

func newRuns(dir string, live bool) *runs {
	ctx, stop := context.WithCancel(context.Background())
	return &runs{dir: dir, live: live, ctx: ctx, stop: stop, known: map[string]folder{}}
}

// close ends all that is read, and waits for it.
func (rs *runs) close() error {
	rs.stop()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.open {
		rs.errs = append(rs.errs, r.close())
	}
	rs.open = nil
	return errors.Join(rs.errs...)
}

// A folder is that of a run.
type folder struct {
	name, path string
	header     trace.Header
}

// folders returns the runs of the folder in the order in which they began.
func (rs *runs) folders() (found []folder, err error) {
	dirs, err := os.ReadDir(rs.dir)
	if errors.Is(err, os.ErrNotExist) && rs.live {
		return nil, nil // its first run makes it
	}
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	paths := []string{rs.dir}
	for _, d := range dirs {
		if d.IsDir() {
			paths = append(paths, filepath.Join(rs.dir, d.Name()))
		}
	}
	for _, p := range paths {
		f, ok := rs.known[p]
		if !ok && begun(p) {
			t, err := trace.Open(p)
			if err != nil {
				continue // its header is about to be written, or it is none of ours
			}
			f = folder{t.Header.Run, p, t.Header}
			rs.known[p], ok = f, true
		}
		if ok {
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b folder) int {
		return cmp.Or(cmp.Compare(a.header.Start, b.header.Start), cmp.Compare(a.name, b.name))
	})
	return found, nil
}

// begun reports whether a folder is that of a run.
func begun(dir string) bool {
	in, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(in, func(d os.DirEntry) bool { return strings.HasPrefix(d.Name(), "node-") })
}

// errNone says that there is no such run.
var errNone = errors.New("there is no such run")

// get returns a run by its name, the last one if that is empty, and reads it from then on.
func (rs *runs) get(name string) (*run, error) {
	found, err := rs.folders()
	if err != nil {
		return nil, err
	}
	if name == "" && len(found) > 0 {
		name = found[len(found)-1].name
	}
	i := slices.IndexFunc(found, func(f folder) bool { return f.name == name })
	switch {
	case len(found) == 0:
		return nil, index.ErrWaiting
	case i < 0:
		return nil, errNone
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.ctx.Err() != nil {
		return nil, errors.New("the server ends")
	}
	if at := slices.IndexFunc(rs.open, func(r *run) bool { return r.name == name }); at >= 0 {
		r := rs.open[at]
		rs.open = append(slices.Delete(rs.open, at, at+1), r)
		return r, nil
	}
	if len(rs.open) == mostOpen {
		rs.errs = append(rs.errs, rs.open[0].close())
		rs.open = slices.Delete(rs.open, 0, 1)
	}
	r := &run{folder: found[i], live: rs.live, opened: make(chan struct{}), done: make(chan struct{})}
	ctx, stop := context.WithCancel(rs.ctx)
	r.stop = stop
	go r.follow(ctx)
	rs.open = append(rs.open, r)
	return r, nil
}

// A run is one that is read.
type run struct {
	folder
	live   bool // it is under way, as far as is known
	stop   context.CancelFunc
	opened chan struct{} // closed when there is an index
	done   chan struct{}

	mu  sync.Mutex
	ix  *index.Index // nil: it has not begun
	rec *record.Run  // nil: there are no samples
	err error
}

// close ends the reading, and waits for it. Who asks the index afterwards is answered from what it has.
func (r *run) close() error {
	r.stop()
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ix == nil {
		return nil
	}
	return r.ix.Close()
}

// follow reads what the run writes, until ctx ends.
func (r *run) follow(ctx context.Context) {
	defer close(r.done)
	begin := time.Now()
	for ctx.Err() == nil {
		more, err := r.read(ctx, !r.live || time.Since(begin) > lateAfter)
		if err != nil {
			r.mu.Lock()
			r.err = err
			r.mu.Unlock()
			return
		}
		if more {
			continue
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
		}
	}
}

// read reads on, and returns whether there was anything.
func (r *run) read(ctx context.Context, late bool) (more bool, err error) {
	ix, err := r.index()
	if errors.Is(err, index.ErrWaiting) {
		if ix, err = index.Open(r.path, late); errors.Is(err, index.ErrWaiting) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if err := r.sample(); err != nil { // the first who asks is answered with what there is
			return false, errors.Join(err, ix.Close())
		}
		r.mu.Lock()
		r.ix = ix
		r.mu.Unlock()
		close(r.opened)
	} else if err != nil {
		return false, err
	}
	if more, err = ix.Poll(ctx); more || err != nil {
		return more, err
	}
	return false, r.sample()
}

// sample reads on in what nodes tell of themselves.
func (r *run) sample() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rec == nil {
		r.rec, _ = record.Open(r.path) // an error says that there is nothing yet
		return nil
	}
	_, err = r.rec.Poll()
	return err
}

// await waits for a moment until something was read of the run, and returns it.
func (r *run) await(ctx context.Context) (*index.Index, error) {
	select {
	case <-r.opened:
	case <-r.done:
	case <-ctx.Done():
	case <-time.After(openWithin):
	}
	return r.index()
}

// index returns what was read of the run.
func (r *run) index() (*index.Index, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil, r.err
	}
	if r.ix == nil {
		return nil, index.ErrWaiting
	}
	return r.ix, nil
}

// growing reports whether the run goes on, as far as is seen from its files.
func (r *run) growing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.rec != nil && r.rec.End() != nil:
		return false
	case r.live:
		return true
	}
	return recent(r.path)
}

// recent reports whether a file of a run was written to of late.
func recent(dir string) bool {
	found := false
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { // what cannot be read is not new
		if err != nil || d.IsDir() {
			return nil
		}
		if s, err := d.Info(); err == nil && time.Since(s.ModTime()) < liveFor {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}
