package trace

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/godwit-ps/godwit"
)

// A Record is an event as it stands in a file: RecordLen bytes. It is for who reads very many; who does not has [Trace.Events].
type Record []byte

// Key returns which key it is of.
func (r Record) Key() godwit.Key { return keyOf(r) }

// Kind returns what it is. Of Input and kinds that are not known, nothing else is defined.
func (r Record) Kind() Kind { return Kind(r[6]) }

// Micros returns its time, in µs since the base of the segment.
func (r Record) Micros() int64 { return int64(binary.LittleEndian.Uint32(r[8:])) }

// Number returns the epoch, or how many there were of Accessed, Missed, RefreshCount, Lost and Thinned.
func (r Record) Number() uint32 { return binary.LittleEndian.Uint32(r[16:]) }

// A File is a segment of a node.
type File struct {
	Header Header // of the segment
	path   string
	begin  int64
	ctx    context.Context
}

// Files returns the segments of a node that there were when the trace was opened, in their order. Each but the last is complete.
func (t *Trace) Files(n godwit.NodeID) (fs []File) {
	if int(n) < len(t.nodes) {
		for _, s := range t.nodes[n] {
			fs = append(fs, File{s.header, s.path, s.begin, t.ctx})
		}
	}
	return fs
}

// recordsAtOnce is how many records Records reads at once: they fit into a processor's cache.
const recordsAtOnce = 8192

// Records calls yield with some whole records at a time, in their order, until it returns false, and returns up to which byte of the file
// it has come. They are valid during the call.
func (f *File) Records(yield func(records []byte) bool) (end int64, err error) {
	return f.RecordsFrom(0, yield)
}

// RecordsFrom is Records without the first skip ones of the file.
func (f *File) RecordsFrom(skip int64, yield func(records []byte) bool) (end int64, err error) {
	file, err := os.Open(f.path)
	if err != nil {
		return 0, fmt.Errorf("trace: %w", err)
	}
	defer file.Close()
	pooled := buffers.Get().(*[]byte)
	defer buffers.Put(pooled)
	buf := (*pooled)[:recordsAtOnce*RecordLen]
	for end = f.begin + skip*RecordLen; ; {
		if err := context.Cause(f.ctx); err != nil {
			return end, fmt.Errorf("trace: %w", err)
		}
		n, err := file.ReadAt(buf, end)
		if err != nil && !errors.Is(err, io.EOF) {
			return end, fmt.Errorf("trace: %w", err)
		}
		n -= n % RecordLen
		if end += int64(n); n == 0 || !yield(buf[:n]) {
			return end, nil
		}
	}
}

// Last returns the time of the file's last event, in µs since the segment's base; 0 if it has none.
func (f *File) Last() (micros int64, err error) {
	file, err := os.Open(f.path)
	if err != nil {
		return 0, fmt.Errorf("trace: %w", err)
	}
	defer file.Close()
	s, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("trace: %w", err)
	}
	const some = 64 // records: more than those of a decision
	end := (s.Size() - f.begin) / RecordLen * RecordLen
	b := make([]byte, min(end, some*RecordLen))
	if _, err := file.ReadAt(b, f.begin+end-int64(len(b))); err != nil {
		return 0, fmt.Errorf("trace: %w", err)
	}
	for ; len(b) > 0; b = b[RecordLen:] {
		if r := Record(b); r.Kind() != Input {
			micros = max(micros, r.Micros())
		}
	}
	return micros, nil
}

// Skip has the tail read on in a segment, from a byte on that Records returned. Nothing may have been read by it.
func (t *Tail) Skip(f *File, to int64) {
	t.segment, t.skip = f.Header.Segment, to
	t.Header = f.Header
}
