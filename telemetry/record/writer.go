package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/internal/folder"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A Config says whose samples are written where.
type Config struct {
	Dir    string // folder of the run; each node has one within it
	Header Header // of all files; Format, Version and Segment are the writer's
	// Take takes a sample, at once and then once a second. If it is nil, samples are added by [Writer.Add].
	Take func() Sample
	// Warn, if it is not nil, is told of the first sample that cannot be written, but for those of the end, of which Close tells. It is
	// called by the goroutine that writes.
	Warn func(error)
}

// How the writer goes about it.
const (
	every        = time.Second
	segmentBytes = 8 << 20 // of a file, about
	kept         = 16      // files: the first one and the last ones
	closeTimeout = 5 * time.Second
)

// A Writer writes the samples of one node. One goroutine uses it.
type Writer struct {
	cfg  Config
	stop chan struct{}
	done chan struct{}

	// of the goroutine that writes
	file    *os.File
	size    int
	segment int
	torn    bool // the file ends within a line
	lost    uint64
	err     error // the last that writing met
}

// Create begins to write samples to the folder of a node, which must not have any.
func Create(c Config) (*Writer, error) {
	c.Header.Format, c.Header.Version = samplesFormat, Version
	w := &Writer{cfg: c, stop: make(chan struct{}), done: make(chan struct{})}
	if err := os.MkdirAll(trace.NodeDir(c.Dir, c.Header.Node), 0o777); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if err := w.begin(); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if c.Take == nil {
		close(w.done)
	} else {
		go w.run()
	}
	return w, nil
}

func segmentPath(dir string, n godwit.NodeID, segment int) string {
	return filepath.Join(trace.NodeDir(dir, n), fmt.Sprintf("%06d.samples", segment))
}

// run takes samples until it is stopped, the first one at once, so that all that a node does is between two, and a last one at the end.
func (w *Writer) run() {
	defer close(w.done)
	w.Add(w.cfg.Take())
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			w.Add(w.cfg.Take())
		case <-w.stop:
			w.Add(w.cfg.Take())
			return
		}
	}
}

// Add writes a sample. What cannot be written is dropped.
func (w *Writer) Add(s Sample) {
	err := w.add(&s)
	if err != nil {
		w.err = err
		if w.lost++; w.lost == 1 && w.cfg.Warn != nil && !w.ending() {
			w.cfg.Warn(fmt.Errorf("record: a sample was not written: %w", err))
		}
	}
}

// ending reports whether Close was called.
func (w *Writer) ending() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

func (w *Writer) add(s *Sample) error {
	if w.size >= segmentBytes || w.file == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	return w.line(s)
}

// line writes a line. After an error, the next line begins anew.
func (w *Writer) line(x any) error {
	n, err := appendLine(w.file, x, &w.torn)
	w.size += n
	return err
}

// appendLine writes a line to the end of a file, and returns how many bytes. torn says whether the file ends within a line, before and
// afterwards.
func appendLine(f *os.File, x any, torn *bool) (n int, err error) {
	b, err := json.Marshal(x)
	if err != nil {
		return 0, err
	}
	if *torn {
		b = append([]byte{'\n'}, b...)
	}
	n, err = f.Write(append(b, '\n'))
	*torn = err != nil && (n > 0 || *torn)
	return n, err
}

// begin begins a file, and removes one if there are too many.
func (w *Writer) begin() error {
	h := w.cfg.Header
	h.Segment = w.segment + 1
	old := w.file
	w.file = nil
	f, err := folder.Next(old, segmentPath(w.cfg.Dir, h.Node, h.Segment))
	if err != nil {
		return err
	}
	w.file, w.size, w.segment, w.torn = f, 0, h.Segment, false
	if old := w.segment - kept + 1; old > 1 {
		if err := os.Remove(segmentPath(w.cfg.Dir, h.Node, old)); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.err = err // it takes place, and nothing else
		}
	}
	return w.line(h)
}

// Close takes a last sample and ends the writer. It says how writing failed last, if it did. It
// returns after 5 s at the latest: a disk that does not answer holds up nobody.
func (w *Writer) Close() error {
	close(w.stop)
	select {
	case <-w.done:
	case <-time.After(closeTimeout):
		return fmt.Errorf("record: the disk of %s has not answered for %v", w.cfg.Dir, closeTimeout)
	}
	if w.file != nil {
		if err := w.file.Close(); w.err == nil {
			w.err = err
		}
	}
	if w.err != nil {
		return fmt.Errorf("record: %d samples were not written: %w", w.lost, w.err)
	}
	return nil
}

// A Diary writes the events of a run. Any goroutine may add to it. A nil Diary writes none.
type Diary struct {
	mu     sync.Mutex // of the queue's end
	closed bool
	queue  chan Event
	done   chan struct{}
	lost   uint64 // events that found the queue full

	// of the goroutine that writes
	file *os.File
	err  error
}

// aliveEvery is how often the file gets a new time while the diary is open, also where no event comes and no node tells anything, as when the best model is
// evaluated at the end.
const aliveEvery = time.Second

// waiting is how many events wait to be written at the most.
const waiting = 256

const eventsName = "events.jsonl"

// NewDiary begins to write the events of a run to its folder, which must not have any.
func NewDiary(dir, run, policy string) (*Diary, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, eventsName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	d := &Diary{queue: make(chan Event, waiting), done: make(chan struct{}), file: f}
	go d.run(About{eventsFormat, Version, run, policy})
	return d, nil
}

func (d *Diary) run(first About) {
	defer close(d.done)
	torn := false
	write := func(x any) {
		if _, err := appendLine(d.file, x, &torn); err != nil {
			d.err = err
		}
	}
	write(first)
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for open := true; open; {
		var e Event
		select {
		case e, open = <-d.queue:
			if open {
				write(e)
			}
		case now := <-alive.C:
			_ = os.Chtimes(d.file.Name(), now, now) // who looks takes the run for one that was killed otherwise
		}
	}
	if err := d.file.Close(); d.err == nil {
		d.err = err
	}
}

// Add adds an event. It never waits: if too many wait to be written, the event is dropped.
func (d *Diary) Add(e Event) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	select {
	case d.queue <- e:
	default:
		d.lost++
	}
}

// Close writes what was added, for 5 s at the most, and ends the diary. It may be called again.
func (d *Diary) Close() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		close(d.queue)
	}
	lost := d.lost
	d.mu.Unlock()
	select {
	case <-d.done:
	case <-time.After(closeTimeout):
		return fmt.Errorf("record: the disk has taken no event for %v", closeTimeout)
	}
	if d.err == nil && lost > 0 {
		return fmt.Errorf("record: %d events of the run were not written: there were more than the disk takes", lost)
	}
	if d.err != nil {
		return fmt.Errorf("record: events of the run were not written: %w", d.err)
	}
	return nil
}
