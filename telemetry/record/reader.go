package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/internal/folder"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A Run is what was written of a run, as far as it was read. One goroutine uses it.
type Run struct {
	Dir    string  // folder of the run
	About  About   // of the events; empty while there are none
	Nodes  []*Node // by number; those without a sample are nil
	Events []Event // in the order in which they were written
	Bad    int     // lines that could not be read

	events tail
	span   time.Duration // so much of a node that was found is read, its last; 0: all

	written map[string]time.Time // when its files were written to, as they say
	grown   time.Time            // when one was, by this clock
}

// A Node is what was written of a node.
type Node struct {
	Header  Header   // of its first file that is there
	Samples []Sample // by time. Of many, fewer of those that are long ago

	tail    tail
	segment int
	line    int // bytes of the last sample's line, which in memory takes about as much
}

// Samples that are held in memory at the most. Beyond, every second one of the older half of a node's goes.
const (
	maxSamples   = 8192      // of a node
	maxBytes     = 256 << 20 // of a run's, about, but for leastSamples of each node
	leastSamples = 128       // of which the newer half are those of the last minute
)

// maxLine bounds a line that is not whole: what is longer is none of ours.
const maxLine = 1 << 20

var errNone = errors.New("no samples of a run")

// Open reads what was written of a run: dir is its folder, or one that has no more than one such
// folder in it. Of a run that has gone on by itself (see [trace.Restarted]) it is the last one.
func Open(dir string) (*Run, error) { return Recent(dir, 0) }

// Recent is Open of the last samples of each node, which span a time at the least, or are all that there are; 0: all. A long run of many
// nodes has gigabytes of them, of which it reads the ends. All events are read.
func Recent(dir string, span time.Duration) (*Run, error) {
	r, err := Begin(dir)
	if err != nil {
		return nil, err
	}
	r.span = span
	if _, err := r.Poll(); err != nil {
		return nil, err
	}
	return r, r.empty()
}

// empty returns an error if nothing was written of the run.
func (r *Run) empty() error {
	if len(r.Nodes) == 0 && r.About.Format == "" {
		return fmt.Errorf("record: %w in %s: want the folder that --trace named, or one in it", errNone, r.Dir)
	}
	return nil
}

// Begin is Open that reads nothing yet: what there is comes with calls of Poll or PollSome. Nothing need be there but the folder.
func Begin(dir string) (*Run, error) {
	dir, err := folder.Run(dir, eventsName, "node-*/*.samples")
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return &Run{Dir: dir, events: tail{path: filepath.Join(dir, eventsName)}}, nil
}

// Poll reads what was written since the last time, and reports whether there was anything.
func (r *Run) Poll() (more bool, err error) { return r.PollSome(math.MaxInt) }

// PollSome is Poll that reads about so many bytes of samples at the most, of all nodes equally, for who has to do something else meanwhile: a long run
// of many nodes has gigabytes. What is left comes with the next calls.
func (r *Run) PollSome(most int) (more bool, err error) {
	if err := r.discover(); err != nil {
		return false, err
	}
	n := len(r.Events)
	err = r.pollEvents()
	more = len(r.Events) > n
	for i, node := range r.Nodes {
		if node == nil {
			continue
		}
		grown, nerr := r.pollNode(godwit.NodeID(i), node, max(1, most/len(r.Nodes)))
		more, err = more || grown, errors.Join(err, nerr)
	}
	return more, err
}

// discover looks for nodes that have begun to write.
func (r *Run) discover() error {
	dirs, err := os.ReadDir(r.Dir)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	for _, d := range dirs {
		text, ok := strings.CutPrefix(d.Name(), "node-")
		n, err := strconv.ParseUint(text, 10, 16)
		if !ok || err != nil || n >= uint64(godwit.MaxNodes) || int(n) < len(r.Nodes) && r.Nodes[n] != nil {
			continue
		}
		if first := r.next(godwit.NodeID(n), 0); first > 0 {
			for len(r.Nodes) <= int(n) {
				r.Nodes = append(r.Nodes, nil)
			}
			r.Nodes[n] = &Node{segment: first, tail: tail{path: segmentPath(r.Dir, godwit.NodeID(n), first)}}
			if r.span > 0 {
				if err := r.skip(godwit.NodeID(n), r.Nodes[n]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// next returns the first segment of a node after one; 0: there is none.
func (r *Run) next(n godwit.NodeID, after int) (first int) {
	for _, i := range r.segments(n) {
		if i > after {
			return i
		}
	}
	return 0
}

// segments returns the numbers of a node's files, in order.
func (r *Run) segments(n godwit.NodeID) (numbers []int) {
	files, _ := os.ReadDir(trace.NodeDir(r.Dir, n)) // a folder that cannot be read has none
	for _, f := range files {
		text, ok := strings.CutSuffix(f.Name(), ".samples")
		if i, err := strconv.Atoi(text); ok && err == nil && i > 0 {
			numbers = append(numbers, i)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// pollNode reads on in a node's samples, about so many bytes at the most.
func (r *Run) pollNode(n godwit.NodeID, node *Node, most int) (more bool, err error) {
	for {
		next := r.next(n, node.segment) // before the rest is read: then nothing is added to it any more
		last := node.last()
		used, err := node.tail.lines(most, node.sample)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return more, err
		}
		more = more || node.last() != last
		r.Bad += node.tail.bad
		node.tail.bad = 0
		if most -= used; next == 0 || most <= 0 {
			node.thin()
			return more, nil
		}
		node.segment, node.tail = next, tail{path: segmentPath(r.Dir, n, next)}
	}
}

// errDamaged says that a line is none of the format. It is passed over.
var errDamaged = errors.New("the line is damaged")

// begin reads the first line of a file of a format. Behind that of another version, nothing means what it says.
func begin(line []byte, format string, first any) error {
	var of struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if json.Unmarshal(line, &of) != nil || of.Format != format {
		return errDamaged
	}
	if of.Version != Version {
		return fmt.Errorf("the file has version %d of the format, and this program reads version %d: look at the run with the version of godwit that wrote it", of.Version, Version)
	}
	if json.Unmarshal(line, first) != nil {
		return errDamaged
	}
	return nil
}

// header reads the first line of a file.
func (n *Node) header(line []byte) error {
	var h Header
	if err := begin(line, samplesFormat, &h); err != nil {
		return err
	}
	if h.Workers < 0 {
		return errDamaged
	}
	if n.Header.Format == "" {
		n.Header = h
	}
	return nil
}

// sample reads a line. Without a header nobody knows of how many workers it tells.
func (n *Node) sample(line []byte) error {
	if isHeader(line) {
		return n.header(line)
	}
	var s Sample
	if err := json.Unmarshal(line, &s); err != nil || n.Header.Format == "" || len(n.Samples) > 0 && s.Time < n.Samples[len(n.Samples)-1].Time {
		return errDamaged
	}
	n.Samples, n.line = append(n.Samples, s), len(line)
	if len(n.Samples) > 2*n.most() {
		n.thin()
	}
	return nil
}

// last returns the time of the last sample; -1: there is none.
func (n *Node) last() int64 {
	if len(n.Samples) == 0 {
		return -1
	}
	return n.Samples[len(n.Samples)-1].Time
}

// most returns how many samples are held at the most: the fewer, the more nodes there are and the more each tells of the others.
func (n *Node) most() int {
	return min(maxSamples, max(leastSamples, maxBytes/max(1, n.Header.Nodes)/max(1, n.line)))
}

// thin lets go every second of the older half of many samples, but the first one.
func (n *Node) thin() {
	for len(n.Samples) > n.most() {
		half := len(n.Samples) / 2
		few := n.Samples[:0:0]
		for i := 0; i < half; i += 2 {
			few = append(few, n.Samples[i])
		}
		n.Samples = append(few, n.Samples[half:]...)
	}
}

// pollEvents reads on in the events.
func (r *Run) pollEvents() error {
	_, err := r.events.lines(math.MaxInt, r.event)
	r.Bad += r.events.bad
	r.events.bad = 0
	return err
}

func (r *Run) event(line []byte) error {
	if r.About.Format == "" {
		var a About
		if err := begin(line, eventsFormat, &a); err != nil {
			return err
		}
		r.About = a
		return nil
	}
	var e Event
	if json.Unmarshal(line, &e) != nil {
		return errDamaged
	}
	r.Events = append(r.Events, e)
	return nil
}

// Start returns what the run's first event says of it; nil: it has not begun.
func (r *Run) Start() *Start {
	for _, e := range r.Events {
		if e.Start != nil {
			return e.Start
		}
	}
	return nil
}

// End returns what the run's last event says of its end; nil: it goes on, or was killed.
func (r *Run) End() *End {
	if n := len(r.Events); n > 0 {
		return r.Events[n-1].End
	}
	return nil
}

// silence is for how long no file of a run that goes on is left as it is: each node writes a sample a second, and the diary gets a new time.
const silence = 10 * time.Second

// seeWithin is for how long Watch waits for that.
const seeWithin = 3 * time.Second

// Failure returns why the run failed; empty: it did not, or goes on, or its events are elsewhere. Of a run whose leader was killed, the end is missing.
func (r *Run) Failure() string {
	if end := r.End(); end != nil {
		return end.Error
	}
	if r.Start() == nil || r.grows() || len(r.written) == 0 {
		return ""
	}
	at := slices.MaxFunc(slices.Collect(maps.Values(r.written)), time.Time.Compare)
	return fmt.Sprintf("its end is missing, and nothing was written to %s since %s: its leader was killed or stands still, or could not write there", r.Dir, at.Format(time.DateTime))
}

// Live reports whether the run goes on, as far as its files tell: it has not ended, and a file was
// written to in the last ten seconds. Where their times are those of another clock, this is known once Watch, or a later call, has seen one change.
func (r *Run) Live() bool { return r.End() == nil && r.grows() }

// Watch returns once it is known whether the run goes on, also where its files have the times of a clock that is not this machine's: of a
// run without an end, which has written nothing of late as its files say, it waits for up to 3 s until one changes.
func (r *Run) Watch(ctx context.Context) error {
	for end := time.After(seeWithin); r.End() == nil && !r.grows(); {
		select {
		case <-time.After(seeWithin / 30):
		case <-end:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := r.pollEvents(); err != nil {
			return err
		}
	}
	return nil
}

// grows looks at the run's files, and reports whether one was written to in the last ten seconds: for one that is seen for the first time, its time says that,
// and then when this changed.
func (r *Run) grows() bool {
	if r.written == nil {
		r.written = map[string]time.Time{}
	}
	paths := []string{r.events.path}
	for i, n := range r.Nodes {
		if n == nil {
			continue
		}
		path := n.tail.path // which may be an older segment than the newest
		if all := r.segments(godwit.NodeID(i)); len(all) > 0 {
			path = segmentPath(r.Dir, godwit.NodeID(i), all[len(all)-1])
		}
		paths = append(paths, path)
	}
	now := time.Now()
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		at := info.ModTime()
		was, known := r.written[path]
		switch {
		case known && at.Equal(was):
		case known || at.After(now):
			r.grown = now
		case at.After(r.grown):
			r.grown = at
		}
		r.written[path] = at
	}
	return time.Since(r.grown) < silence
}

// A tail is a file of lines that grows.
type tail struct {
	path string
	at   int64
	bad  int
}

// lines calls use with each line that was added and is whole, and counts those that are damaged. It ends when there are no more, or after so many
// bytes, or at a line with which use has another error, and returns how many it has read.
func (t *tail) lines(most int, use func([]byte) error) (read int, err error) {
	f, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // not yet
	}
	if err != nil {
		return 0, fmt.Errorf("record: %w", err)
	}
	defer f.Close()
	buf := make([]byte, 0, 64<<10)
	for {
		n, err := f.ReadAt(buf[len(buf):cap(buf)], t.at+int64(len(buf)))
		buf = buf[:len(buf)+n]
		used := 0
		for {
			i := bytes.IndexByte(buf[used:], '\n')
			if i < 0 {
				break
			}
			if line := buf[used : used+i]; len(line) > 0 {
				switch err := use(line); {
				case errors.Is(err, errDamaged):
					t.bad++
				case err != nil:
					t.at += int64(used)
					return read + used, fmt.Errorf("record: %s: %w", t.path, err)
				}
			}
			used += i + 1
		}
		t.at += int64(used)
		read += used
		buf = append(buf[:0], buf[used:]...)
		switch {
		case errors.Is(err, io.EOF):
			return read, nil
		case err != nil:
			return read, fmt.Errorf("record: %w", err)
		case len(buf) >= maxLine: // whatever it is, it is skipped
			t.at += int64(len(buf))
			read += len(buf)
			t.bad++
			buf = buf[:0]
		case read >= most:
			return read, nil
		case len(buf) == cap(buf):
			buf = slices.Grow(buf, len(buf))
		}
	}
}
