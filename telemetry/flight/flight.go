package flight

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/trace"
	"sync"
	"time"

	"github.com/godwit-ps/godwit/data/atomicfile"
)

// Bounds of what a recorder keeps in memory and writes.
const (
	window   = 30 * time.Second // of the past, if it has room; longer than a lease, after which a peer is lost
	room     = 8 << 20          // bytes of the past, about
	mostSize = 64 << 20         // bytes of a file: what the runtime would write beyond is an error
	mostRuns = 4                // files of a recorder
	together = 5 * time.Second  // waits that end so soon after a file was begun are in it
	patience = 2 * time.Second  // for which Write waits for the disk
	ending   = 5 * time.Second  // for which Close does
)

// A Recorder writes recordings to one folder. Any goroutine may use it. A nil Recorder records
// nothing.
type Recorder struct {
	dir     string
	writing sync.WaitGroup

	mu     sync.Mutex
	n      int           // files that were begun
	last   string        // the last of these,
	done   chan struct{} // … which is closed when it is written,
	failed error         // … and why it is not; set before
	at     time.Time     // … when it was begun
	closed bool
}

// process is the runtime's recorder, which all of a process share.
var process struct {
	sync.Mutex
	recorder *trace.FlightRecorder
	users    int
}

// Start begins to record. Files go to dir, which is made with the first of them. The recorder must be
// closed. It is an error if the program has begun a flight recorder of its own.
func Start(dir string) (*Recorder, error) {
	process.Lock()
	defer process.Unlock()
	if process.users == 0 {
		f := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: window, MaxBytes: room})
		if err := f.Start(); err != nil {
			return nil, fmt.Errorf("flight: %w", err)
		}
		process.recorder = f
	}
	process.users++
	return &Recorder{dir: dir}, nil
}

// Write writes down what the process did in its last seconds, and returns the path of the file.
// Of calls within five seconds, the first one writes. It waits for at most two seconds; after that the file may
// not be there yet. It returns "" where there is none: the recorder has written its four files, could not (see [Recorder.Err]),
// or is closed.
func (r *Recorder) Write() (path string) {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	switch recent := r.n > 0 && time.Since(r.at) < together; {
	case r.closed || !recent && r.n == mostRuns:
		r.mu.Unlock()
		return ""
	case !recent:
		r.n++
		r.at, r.failed, r.done = time.Now(), nil, make(chan struct{})
		r.last = filepath.Join(r.dir, fmt.Sprintf("flight-%d.out", r.n))
		path, done := r.last, r.done
		r.writing.Go(func() { r.write(path, done) })
	}
	path, done := r.last, r.done
	r.mu.Unlock()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-done:
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.done == done && r.failed != nil {
			return ""
		}
	case <-limit.C:
	}
	return path
}

// Err says why the last file could not be written; nil: it was, it is being written, or none was begun.
func (r *Recorder) Err() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// write writes a file, and closes done.
func (r *Recorder) write(path string, done chan struct{}) {
	defer close(done)
	err := os.MkdirAll(r.dir, 0o777)
	if err == nil {
		err = atomicfile.Write(path, record)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done == done {
		r.failed = err
	}
}

// record writes the window to w.
func record(w io.Writer) error {
	process.Lock()
	defer process.Unlock()
	if process.recorder == nil {
		return errClosed
	}
	_, err := process.recorder.WriteTo(&limited{w, mostSize})
	return err
}

var (
	errClosed = errors.New("flight: no recorder is left")
	errLong   = errors.New("flight: the recording is too long")
)

// A limited writer takes so many bytes.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, errLong
	}
	return l.w.Write(b)
}

// Close ends the recorder. It waits for a file that is being written, for five seconds at the most: a disk that does not answer
// holds up nobody. The runtime traces until it does, then. Closing again does nothing.
func (r *Recorder) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	was := r.closed
	r.closed = true
	r.mu.Unlock()
	if was {
		return
	}
	ended := make(chan struct{})
	go func() { // ends later than Close only if the disk does not answer
		defer close(ended)
		r.writing.Wait()
		leave()
	}()
	limit := time.NewTimer(ending)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
	}
}

// leave ends the runtime's recorder if no other one uses it.
func leave() {
	process.Lock()
	defer process.Unlock()
	if process.users--; process.users == 0 {
		process.recorder.Stop()
		process.recorder = nil
	}
}
