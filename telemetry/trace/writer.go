package trace

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/internal/folder"
)

// A Config says whose trace is written where.
type Config struct {
	Dir    string // folder of the run's trace; each node has one within it
	Header Header // what all segments begin with; Segment and Base are the writer's
	Keys   Keys   // which are traced
	// Plain has whoever adds events write them as well, where there are many: for simulations, which
	// have a time of their own.
	Plain bool
}

// How the writer goes about it.
const (
	flushEvery   = 250 * time.Millisecond
	maxPending   = 1 << 17  // events that wait to be written; more are dropped, and those of copies that come or go at twice as many
	segmentBytes = 16 << 20 // of a segment at the most, about
	segmentTime  = 1 << 31  // µs that a segment spans at the most

	maxDetails  = 1 << 13 // records of details between two flushes; those of half of the keys are left out from then on
	mostThinned = 16      // … so many times at the most

	diskTimeout = 5 * time.Second // for which who ends a writer, or has it write, waits for the disk
)

// A Writer writes the trace of one node. Any goroutine may add to it.
type Writer struct {
	cfg  Config
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex
	pending notes
	lost    uint64 // events dropped since the last Lost was written
	dropped uint64 // … since the beginning
	err     error  // the last that writing met
	at      int64  // time of the last event that was taken to be written
	clock   uint32 // likewise
	details int    // records of details since the last flush, or since details were thinned

	thinned atomic.Uint32 // details are those of one key of 1<<thinned

	keys      uint64 // of the model
	refreshes *refreshes

	census census

	// of the goroutine that writes
	writing sync.Mutex
	spare   notes
	buf     []byte
	file    *os.File
	size    int
	base    int64 // of the segment, in µs
	segment int
	last    int64 // time of the last event
}

// Create makes the folder of a node's trace, which must not have one, and begins to write.
func Create(c Config) (*Writer, error) {
	if c.Header.Nodes > MaxNodes {
		return nil, fmt.Errorf("trace: the run has %d nodes, a trace can have %d", c.Header.Nodes, MaxNodes)
	}
	c.Header.Traced = c.Keys.String()
	dir := NodeDir(c.Dir, c.Header.Node)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	if old, err := os.ReadDir(dir); err != nil || len(old) > 0 {
		return nil, fmt.Errorf("trace: %s has a trace already; give another folder", dir)
	}
	w := &Writer{cfg: c, stop: make(chan struct{}), done: make(chan struct{}), pending: notes{of: make([]note, 0, maxDetails)}, spare: notes{of: make([]note, 0, maxDetails)}}
	for i := range c.Header.Tables {
		w.keys += c.Header.Tables[i].Rows
	}
	w.refreshes = newRefreshes(w.keys)
	if err := w.begin(0); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	if c.Plain {
		close(w.done)
	} else {
		go w.run()
	}
	return w, nil
}

// NodeDir returns the folder of a node within that of a run.
func NodeDir(dir string, n godwit.NodeID) string {
	return filepath.Join(dir, fmt.Sprintf("node-%d", n))
}

// Keys returns how many keys the model has.
func (w *Writer) Keys() uint64 { return w.keys }

// Has reports whether a key is traced. A nil Writer traces none.
func (w *Writer) Has(k godwit.Key) bool { return w != nil && w.cfg.Keys.Has(k) }

// Takes reports whether events of a kind are to be added of a key. Where keys change so often that their details, which are their intents, what was
// asked for them and decided about them, would take a good part of the processors' time, those of fewer keys are taken, which
// is told by an event Thinned. All are taken of keys that are traced by their names. A nil Writer takes none.
func (w *Writer) Takes(k godwit.Key, kind Kind) bool {
	return w.Has(k) && (!kind.details() || w.cfg.Keys.detailed(k, w.thinned.Load()))
}

// thin has details of half as many keys taken if there were many of them, with the next so many records. It is called under the lock.
func (w *Writer) thin(records int) {
	if w.details += records; w.details > maxDetails && !w.cfg.Plain && w.thinned.Load() < mostThinned {
		w.thinTo(w.thinned.Load() + 1)
	}
}

// thinTo has it told that details are those of one key of 1<<n from now on, by the time of the event before.
func (w *Writer) thinTo(n uint32) {
	w.thinned.Store(n)
	w.details = 0
	at := w.at
	if last := len(w.pending.of) - 1; last >= 0 {
		at = w.pending.of[last].time
	}
	w.pending.add(&Event{Kind: Thinned, N: 1 << n, Time: at, Peer: w.cfg.Header.Node})
}

// Add adds an event that Takes takes, and keeps nothing of its decision. It waits for nothing but others that add.
func (w *Writer) Add(e Event) {
	w.mu.Lock()
	switch {
	case e.Kind == Refreshed && !w.cfg.Plain:
		w.refreshes.add()
	case e.Kind.details():
		w.thin(e.records())
	}
	full := len(w.pending.of) >= maxPending && (len(w.pending.of) >= 2*maxPending || !e.Kind.moves())
	switch {
	case !full:
		w.pending.add(&e)
	case !w.cfg.Plain:
		w.lost++
		w.dropped++
	}
	w.mu.Unlock()
	if full && w.cfg.Plain {
		w.flush(true)
		w.mu.Lock()
		w.pending.add(&e)
		w.mu.Unlock()
	}
}

// Dropped returns how many events could not be written.
func (w *Writer) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Lacks says how many events could not be written by now, and why; nil: all could.
func (w *Writer) Lacks() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.dropped == 0:
		return nil
	case w.err == nil:
		return fmt.Errorf("trace: %d events were not written: there were more than the disk takes", w.dropped)
	}
	return fmt.Errorf("trace: %d events were not written: %w", w.dropped, w.err)
}

// Close writes what was added, and ends the writer. It says how writing failed last, if it did. It returns after 5 s at the
// latest: a disk that does not answer holds up nobody.
func (w *Writer) Close() error { return w.closeWithin(diskTimeout) }

func (w *Writer) closeWithin(limit time.Duration) error {
	close(w.stop)
	var err error // of end, until it has ended
	if !within(limit, func() { err = w.end() }) {
		return fmt.Errorf("trace: the disk of %s has not answered for %v", w.cfg.Dir, limit)
	}
	return err
}

// within calls do, and reports whether it has ended within a time. If it has not, its goroutine goes on, and ends when the disk answers.
func within(limit time.Duration, do func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// end writes what is left, and closes the file.
func (w *Writer) end() error {
	<-w.done
	w.flush(true)
	err := w.err
	if w.file != nil {
		if cerr := w.file.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return fmt.Errorf("trace: %d events were not written: %w", w.Dropped(), err)
	}
	return nil
}

func (w *Writer) run() {
	defer close(w.done)
	t := time.NewTicker(flushEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			w.flush(false)
		case <-w.stop:
			return
		}
	}
}

// Flush writes what was added and counted, which happens four times a second, or once, without it. What cannot be written is dropped.
// It returns after 5 s at the latest, as Close does.
func (w *Writer) Flush() { within(diskTimeout, func() { w.flush(true) }) }

// flush is Flush, without what was counted where it is not yet time to write that, if not all is set.
func (w *Writer) flush(all bool) {
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.Lock()
	var counts map[godwit.Key]uint32
	if n := w.thinned.Load(); n > 0 && w.details < maxDetails/4 {
		w.thinTo(n - 1)
	}
	counted := w.refreshes.quarter() || all
	if counted {
		counts, w.refreshes.more = w.refreshes.more, nil
	}
	events, lost := w.pending, w.lost
	if last := len(events.of) - 1; last >= 0 {
		w.at, w.clock = events.of[last].time, events.of[last].clock
	}
	w.spare.clear()
	w.pending, w.lost, w.details = w.spare, 0, 0
	at, clock := w.at, godwit.Clock(w.clock)
	w.mu.Unlock()
	if counted {
		w.refreshes.take(counts, &events, Event{Time: at, Clock: clock, Kind: RefreshCount, Peer: w.cfg.Header.Node})
	}
	w.spare = events
	if lost > 0 {
		events.add(&Event{Kind: Lost, N: uint32(min(lost, 1<<32-1)), Time: w.last, Peer: w.cfg.Header.Node})
	}
	for len(events.of) > 0 {
		some := events.cut(w.some(events.of))
		if err := w.write(some); err != nil {
			w.skip(some.of, events.of)
			rest := uint64(len(some.of) + len(events.of))
			if lost > 0 {
				rest-- // the event that says so is none
			}
			w.mu.Lock()
			w.lost += rest + lost
			w.dropped += rest
			w.err = err
			w.mu.Unlock()
			return
		}
	}
}

// skip takes note of events that are not written. Of the first ones, write has done so where it began to.
func (w *Writer) skip(first, rest []note) {
	if w.file == nil {
		w.census.skip(first)
	}
	w.census.skip(rest)
}

// some returns how many events to write at once: few enough for segments to be of equal size, and for none to span too long a time.
func (w *Writer) some(events []note) int {
	most := min(len(events), segmentBytes/RecordLen/8)
	for i := range events[:most] {
		if (events[i].time-events[0].time)/micro > segmentTime {
			return i
		}
	}
	return most
}

// write writes events, to a new segment if this one is long enough.
func (w *Writer) write(events notes) error {
	last := int64(0)
	for i := range events.of {
		last = max(last, events.of[i].time)
	}
	if w.file == nil || w.size >= segmentBytes || last/micro-w.base > segmentTime {
		if err := w.begin(events.of[0].time); err != nil {
			return err
		}
	}
	w.buf = w.buf[:0]
	w.census.count(events.of)
	w.last = max(w.last, last)
	numbers := events.numbers
	for i := range events.of {
		e := &events.of[i]
		w.buf = e.append(w.buf, w.base, numbers)
		numbers = numbers[e.numbers:]
	}
	return w.put()
}

// put writes buf. After an error, the next events go to a new segment: this one may end within
// a record.
func (w *Writer) put() error {
	n, err := w.file.Write(w.buf)
	w.size += n
	if err != nil {
		_ = w.file.Close() // the first error is told
		w.file = nil
	}
	return err
}

// begin begins a segment whose first event is of a time, with what the node has of keys. The time of the last event may be hours ago, which is more
// than the time of a record has room for.
func (w *Writer) begin(time int64) error {
	h := w.cfg.Header
	h.Segment, h.Base = w.segment+1, max(w.last, time)/micro
	head, err := h.encode() // which is as long as that of the first segment
	if err != nil {
		return err
	}
	old := w.file
	w.file = nil
	f, err := folder.Next(old, filepath.Join(NodeDir(w.cfg.Dir, h.Node), SegmentName(h.Segment)))
	if err != nil {
		return err
	}
	w.file, w.size, w.base = f, 0, h.Base
	w.buf = append(w.buf[:0], head...)
	for _, k := range w.census.held() {
		e := Event{Time: h.Base * micro, Key: k.Key, Epoch: k.epoch, Kind: k.has, Peer: h.Node}
		w.buf = e.append(w.buf, w.base)
	}
	if err := w.put(); err != nil {
		_ = os.Remove(f.Name()) // the disk may be full: no file stays for each try
		return err
	}
	w.segment = h.Segment
	return nil
}
