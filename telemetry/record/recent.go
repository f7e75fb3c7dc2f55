package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"

	"github.com/godwit-ps/godwit"
)

// stride is how many bytes lie between the places at which a file is looked at from its end on.
const stride = 64 << 10

// skip reads the header of a node's first file, and goes to the sample from which on samples are read.
func (r *Run) skip(n godwit.NodeID, node *Node) error {
	if _, err := node.tail.lines(1, node.sample); err != nil {
		return err
	}
	node.Samples, node.tail.at, node.tail.bad = nil, 0, 0
	last := int64(math.MinInt64) // a time near the end; not known yet
	for _, segment := range slices.Backward(r.segments(n)) {
		at := tail{path: segmentPath(r.Dir, n, segment)}
		enough, err := at.back(&last, int64(r.span))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it made place for others, and there is none before it
		}
		if err != nil {
			return fmt.Errorf("record: %w", err)
		}
		if node.segment, node.tail = segment, at; enough {
			return nil
		}
	}
	return nil
}

// back goes from the end of a file to a sample that lies a span before the last one, both in ns, and reports whether there is one; else to
// the file's begin. last is a time near the end of the node's samples, or the least number while none is known.
func (t *tail) back(last *int64, span int64) (enough bool, err error) {
	f, err := os.Open(t.path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	for t.at = info.Size(); t.at > 0; {
		t.at = max(0, t.at-stride)
		start, time, err := sampleBehind(f, t.at, info.Size())
		switch {
		case errors.Is(err, io.EOF):
		case err != nil:
			return false, err
		case *last == math.MinInt64:
			*last = time
		case *last-time >= span:
			t.at = start
			return true, nil
		}
	}
	return false, nil
}

// sampleBehind returns where the first sample begins whose line begins at a place of a file or behind it, and its time; io.EOF: there is none before
// the end, or within the bytes that two lines have.
func sampleBehind(f *os.File, at, end int64) (start, time int64, err error) {
	in := bufio.NewReader(io.NewSectionReader(f, at, min(end-at, 2*maxLine)))
	for begins := at == 0; ; begins = true {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0, 0, err
		}
		var s struct {
			Time *int64 `json:"t"`
		}
		if begins && !isHeader(line) && json.Unmarshal(line, &s) == nil && s.Time != nil {
			return at, *s.Time, nil
		}
		at += int64(len(line))
	}
}

// isHeader reports whether a line is the first one of a file.
func isHeader(line []byte) bool { return bytes.Contains(line[:min(len(line), 64)], []byte(`"format"`)) }
