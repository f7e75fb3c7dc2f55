package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit"
)

// A Tail reads the events of one node in the order in which they are written, also while that goes on.
// It belongs to one goroutine.
type Tail struct {
	Header  Header // of the segment that is read; Segment is 0 before the first one
	dir     string // of the node
	file    *os.File
	segment int // that is read, or is to be read next
	buf     []byte
	rest    int   // bytes of buf that are the begin of a record
	records int64 // of the segment, before the one that is read
	skip    int64 // from which byte on the first file is read; 0: from its begin
}

// tailBytes is how many bytes a Tail reads at once.
const tailBytes = 1 << 20

// NewTail returns a Tail of a node of the trace in a run's folder. Neither need be there yet.
func NewTail(dir string, n godwit.NodeID) *Tail {
	return &Tail{dir: NodeDir(dir, n), segment: 1}
}

// Read calls yield for each of the next events, and returns how many there were: 0 where nothing was written since
// the last call. Decisions come without what they were decided from; the records of that count as events. It reads about 50,000 at the most. An event is valid during the call only. A segment begins with events
// Owns and Replicates, of all that the node has, and Header.Segment has become another one.
func (t *Tail) Read(yield func(*Event)) (n int, err error) {
	for {
		// Only what is not written any more is left for the next segment.
		more := t.exists(t.segment + 1)
		if n, err = t.read(yield); n > 0 || err != nil || !more {
			return n, err
		}
		if err := t.Close(); err != nil {
			return 0, err
		}
		t.segment++
	}
}

// Before returns how many records of the segment come before the event that Read yields.
func (t *Tail) Before() int64 { return t.records }

// Close closes the file that is open.
func (t *Tail) Close() error {
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file, t.rest = nil, 0
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

// SegmentName returns the name of a segment's file in the folder of its node.
func SegmentName(n int) string { return fmt.Sprintf("%06d.trace", n) }

func (t *Tail) path(segment int) string { return filepath.Join(t.dir, SegmentName(segment)) }

func (t *Tail) exists(segment int) bool {
	_, err := os.Stat(t.path(segment))
	return err == nil
}

// read reads on in the segment.
func (t *Tail) read(yield func(*Event)) (events int, err error) {
	if t.file == nil {
		if err := t.open(); errors.Is(err, errShort) || errors.Is(err, fs.ErrNotExist) {
			return 0, nil // it is about to be written
		} else if err != nil {
			return 0, err
		}
	}
	if t.buf == nil {
		t.buf = make([]byte, tailBytes/RecordLen*RecordLen)
	}
	n, err := t.file.Read(t.buf[t.rest:])
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("trace: %w", err)
	}
	b := t.buf[:t.rest+n]
	for ; len(b) >= RecordLen; b = b[RecordLen:] {
		if events++; Kind(b[6]) != Input {
			e := decode(b, &t.Header)
			yield(&e)
		}
		t.records++
	}
	t.rest = copy(t.buf, b)
	return events, nil
}

// open opens the segment, if its header is there.
func (t *Tail) open() error {
	h, n, err := readHeader(t.path(t.segment))
	if err != nil {
		return fmt.Errorf("%w (%s)", err, t.path(t.segment))
	}
	f, err := os.Open(t.path(t.segment))
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	begin := max(int64(n), t.skip)
	t.skip = 0
	if _, err := f.Seek(begin, io.SeekStart); err != nil {
		return errors.Join(fmt.Errorf("trace: %w", err), f.Close())
	}
	t.file, t.Header, t.records = f, h, (begin-int64(n))/RecordLen
	return nil
}
