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

// runs are the runs of a folder. Those that are looked at are read; few at a time, because an index takes memory.
type runs struct {
	dir  string
	live bool
	ctx  context.Context
	stop context.CancelFunc

	mu      sync.Mutex
	known   map[string]folder // by path
	unread  error             // of a trace that cannot be read; nil: there was none at the last look
	number  int               // of the folder that became known last
	open    []*run            // the last one that was asked for comes last
	leaving []*run            // those that are not read any more, but have not ended yet
	errs    []error
}

// How many runs are read at a time: so many of those that somebody asked for, or more if pages show them.
const (
	mostOpen  = 2
	mostShown = 4
)

// How often files are looked at, and how long a run counts as live in which nothing happens.
const (
	pollEvery  = 250 * time.Millisecond
	mostPause  = 10 * time.Second // between tries to read what cannot be read
	liveFor    = 10 * time.Second
	openWithin = 2 * time.Second // a run is begun to be read, if it can be
	lateAfter  = 3 * time.Second // a node that has not begun is not waited for
)

func newRuns(dir string, live bool) *runs {
	ctx, stop := context.WithCancel(context.Background())
	return &runs{dir: dir, live: live, ctx: ctx, stop: stop, known: map[string]folder{}}
}

// close ends all that is read, and waits for it up to the end of ctx.
func (rs *runs) close(ctx context.Context) error {
	rs.stop()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range append(rs.leaving, rs.open...) {
		select {
		case <-r.done:
			rs.errs = append(rs.errs, r.left)
		case <-ctx.Done(): // its disk does not answer
		}
	}
	rs.open, rs.leaving = nil, nil
	return errors.Join(rs.errs...)
}

// A folder is that of a run.
type folder struct {
	name, path string // that of the run, and where several have it also that of the folder; the folder's
	header     trace.Header
	number     int         // another one for a run that was made anew
	info       os.FileInfo // of path, when its header was read
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
	known := map[string]folder{}
	rs.unread = nil
	for _, p := range paths {
		f, ok, err := rs.folder(p)
		if ok {
			known[p], found = f, append(found, f)
		}
		rs.unread = cmp.Or(err, rs.unread)
	}
	rs.known = known
	slices.SortFunc(found, func(a, b folder) int {
		return cmp.Or(cmp.Compare(a.header.Start, b.header.Start), cmp.Compare(a.name, b.name), cmp.Compare(a.path, b.path))
	})
	tell(found)
	return found, nil
}

// tell gives runs of the same name other ones, by which they are told apart.
func tell(found []folder) {
	times := map[string]int{}
	for _, f := range found {
		times[f.name]++
	}
	for i := range found {
		if f := &found[i]; times[f.name] > 1 {
			f.name += " in " + filepath.Base(f.path)
		}
	}
}

// folder returns what is known of the folder at a path, and whether a run has begun in it. An error says that its trace cannot be read. It is
// called under the lock.
func (rs *runs) folder(path string) (f folder, ok bool, err error) {
	f, ok = rs.known[path]
	info, err := os.Stat(path)
	switch {
	case err == nil && ok && os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()):
		return f, true, nil
	case err != nil || !begun(path):
		return f, false, nil // it was removed, or is none of ours
	}
	t, err := trace.Open(path)
	switch {
	case trace.IsEmpty(err), errors.Is(err, fs.ErrNotExist):
		return f, ok, nil // its header is about to be written
	case err != nil:
		return f, ok, err
	}
	h := t.Header
	anew := !ok || !os.SameFile(info, f.info) || h.Run != f.header.Run || h.Node == f.header.Node && h.Start != f.header.Start
	if anew {
		rs.number++
		f.number = rs.number
	}
	f.name, f.path, f.header, f.info = h.Run, path, h, info
	return f, true, nil
}

// begun reports whether a folder is that of a run.
func begun(dir string) bool {
	in, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(in, func(d os.DirEntry) bool { return strings.HasPrefix(d.Name(), "node-") })
}

// errNone says that there is no such run.
var errNone = errors.New("there is no such run")

// errMany says that too many pages are open.
var errMany = fmt.Errorf("pages show %d other runs already: close one", mostShown)

// get returns a run by its name, the last one if that is empty, and reads it from then on.
func (rs *runs) get(name string) (*run, error) {
	f, err := rs.find(name)
	if err != nil {
		return nil, err
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.read(f)
}

// show is get for an open page. The page has shown another run before, or none. A run that is shown is read until the page shows another one, or hides it.
func (rs *runs) show(name string, before *run) (*run, error) {
	f, err := rs.find(name)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if before != nil {
		before.pages--
	}
	if err != nil {
		return nil, err
	}
	r, err := rs.read(f)
	if err == nil {
		r.pages++
	}
	return r, err
}

// hide takes note that a page does not show a run any more; nil: it has shown none.
func (rs *runs) hide(r *run) {
	if r != nil {
		rs.mu.Lock()
		r.pages--
		rs.mu.Unlock()
	}
}

// find returns the folder of a run by its name, that of the last one if that is empty.
func (rs *runs) find(name string) (f folder, err error) {
	found, err := rs.folders()
	if err != nil {
		return f, err
	}
	if name == "" && len(found) > 0 {
		name = found[len(found)-1].name
	}
	i := slices.IndexFunc(found, func(f folder) bool { return f.name == name })
	switch {
	case len(found) == 0:
		rs.mu.Lock()
		defer rs.mu.Unlock()
		return f, cmp.Or(rs.unread, index.ErrWaiting)
	case i < 0:
		return f, errNone
	}
	return found[i], nil
}

// read returns the run in a folder, which is read from then on. It is called under the lock.
func (rs *runs) read(f folder) (*run, error) {
	if rs.ctx.Err() != nil {
		return nil, errors.New("the server ends")
	}
	if at := slices.IndexFunc(rs.open, func(r *run) bool { return r.path == f.path }); at >= 0 {
		r := rs.open[at]
		if r.number == f.number && r.name == f.name {
			rs.open = append(slices.Delete(rs.open, at, at+1), r)
			return r, nil
		}
		rs.leave(at)
	}
	for len(rs.open) >= mostOpen {
		at := slices.IndexFunc(rs.open, func(r *run) bool { return r.pages == 0 })
		if at < 0 {
			break
		}
		rs.leave(at)
	}
	if len(rs.open) == mostShown {
		return nil, errMany
	}
	r := &run{folder: f, live: rs.live, opened: make(chan struct{}), done: make(chan struct{})}
	ctx, stop := context.WithCancel(rs.ctx)
	r.stop = stop
	go r.follow(ctx)
	rs.open = append(rs.open, r)
	return r, nil
}

// leave ends the reading of an open run, and does not wait for that. It is called under the lock.
func (rs *runs) leave(at int) {
	r := rs.open[at]
	rs.open = slices.Delete(rs.open, at, at+1)
	r.stop()
	rs.leaving = append(slices.DeleteFunc(rs.leaving, func(r *run) bool {
		select {
		case <-r.done:
			rs.errs = append(rs.errs, r.left)
			return true
		default:
			return false
		}
	}), r)
}

// A run is one that is read.
type run struct {
	folder
	live   bool // it is under way, as far as is known
	pages  int  // that show it; under the lock of runs
	stop   context.CancelFunc
	opened chan struct{} // closed when there is an index, or an error
	done   chan struct{}
	left   error // of closing what was read; set when done is closed

	once   sync.Once // of opened
	loaded bool      // the index has what there was at first; of who reads

	mu  sync.Mutex
	ix  *index.Index // nil: it has not begun
	rec *record.Run  // nil: there are no samples
	err error        // of the last try to read on
}

// follow reads what the run writes, until ctx ends. What cannot be read is tried again. Who asks the index afterwards is answered from what it has.
func (r *run) follow(ctx context.Context) {
	defer close(r.done)
	defer func() { r.left = r.drop() }()
	begin, pause := time.Now(), pollEvery
	for ctx.Err() == nil {
		more, err := r.read(ctx, !r.live || time.Since(begin) > lateAfter)
		if ctx.Err() != nil {
			return
		}
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
		switch {
		case err != nil:
			r.open()
			pause = min(2*pause, mostPause)
		case more:
			continue
		default:
			pause = pollEvery
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// read reads on, and returns whether there was anything.
func (r *run) read(ctx context.Context, late bool) (more bool, err error) {
	if r.ix == nil { // which nobody else changes
		ix, err := index.Open(r.path, late)
		if errors.Is(err, index.ErrWaiting) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if _, err := r.sample(); err != nil { // the first who asks is answered with what there is, unless that is much
			return false, errors.Join(err, ix.Close())
		}
		r.mu.Lock()
		r.ix = ix
		r.mu.Unlock()
		r.open()
	}
	if more, err = r.ix.Poll(ctx); err != nil && !r.loaded {
		err = errors.Join(err, r.drop()) // it has a part of what there is
		r.mu.Lock()
		r.ix = nil
		r.mu.Unlock()
	}
	if r.loaded = r.loaded || err == nil; more || err != nil {
		return more, err
	}
	return r.sample()
}

// open lets those go on who wait for an index.
func (r *run) open() { r.once.Do(func() { close(r.opened) }) }

// drop closes the files that the index has open.
func (r *run) drop() error {
	if r.ix == nil {
		return nil
	}
	return r.ix.Close()
}

// sampleBytes is how much is read at once of what nodes tell of themselves: who asks for something waits for that.
const sampleBytes = 4 << 20

// sample reads on in what nodes tell of themselves, and returns whether there was anything.
func (r *run) sample() (more bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rec != nil {
		return r.rec.PollSome(sampleBytes)
	}
	rec, err := record.Begin(r.path)
	if err != nil {
		return false, nil // there is nothing yet
	}
	if more, err = rec.PollSome(sampleBytes); err == nil && (rec.About.Format != "" || len(rec.Nodes) > 0) {
		r.rec = rec
	}
	return more, err
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
	case r.live && (r.rec == nil || r.rec.End() == nil):
		return true
	case r.rec != nil:
		return r.rec.Live()
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
