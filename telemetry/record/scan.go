package record

import (
	"bytes"
	"encoding/json"
	"os"

	"github.com/godwit-ps/godwit"
)

// A Front is a sample of which the fields before Sent were read. The others are read when they are asked for: a node that has many peers tells much of these.
type Front struct {
	Sample
	Half int // of the node's samples in which it is, by the bytes of its files: 0 or 1
	line []byte
}

// Whole returns the sample with all of its fields.
func (f *Front) Whole() (s Sample, err error) {
	err = json.Unmarshal(f.line, &s)
	return s, err
}

// read takes a line, and reports whether it is a sample.
func (f *Front) read(line []byte) bool {
	f.line = append(f.line[:0], line...)
	if i := bytes.Index(line, []byte(`,"sent":`)); i >= 0 && json.Valid(line) {
		f.Sample = Sample{}
		if json.Unmarshal(append(line[:i:i], '}'), &f.Sample) == nil {
			return true
		}
	}
	f.Sample = Sample{}
	return json.Unmarshal(line, &f.Sample) == nil
}

// Outline is Open that reads no samples: they are read by [Run.Each].
func Outline(dir string) (*Run, error) {
	r, err := Begin(dir)
	if err != nil {
		return nil, err
	}
	if err := r.discover(); err != nil {
		return nil, err
	}
	if err := r.pollEvents(); err != nil {
		return nil, err
	}
	return r, r.empty()
}

// Bytes returns how many bytes the samples of a node have; 0: there is no such node.
func (r *Run) Bytes(n godwit.NodeID) (bytes int64) {
	for _, segment := range r.segments(n) {
		if info, err := os.Stat(segmentPath(r.Dir, n, segment)); err == nil { // else it has made place for others
			bytes += info.Size()
		}
	}
	return bytes
}

// eachBytes is how many bytes Each reads between two calls of tell, about.
const eachBytes = 4 << 20

// Each calls use with each sample of a node of an [Outline] but the first, and the sample before it, and keeps none of them: a long run of many nodes has more than
// there is memory. Both change when use has returned. It calls tell when it has read so many more bytes. It reads the node's header, and returns the last sample; nil: there is none.
func (r *Run) Each(id godwit.NodeID, use func(before, now *Front), tell func(bytes int)) (now *Front, err error) {
	n, all, done := r.Nodes[id], r.Bytes(id), int64(0)
	before, spare := (*Front)(nil), &Front{}
	take := func(line []byte) error {
		done += int64(len(line)) + 1
		if isHeader(line) {
			return n.header(line)
		}
		if !spare.read(line) || n.Header.Format == "" || now != nil && spare.Time < now.Time {
			return errDamaged
		}
		spare.Half = int(min(1, 2*done/(all+1)))
		if before, now, spare = now, spare, before; spare == nil {
			spare = &Front{}
		}
		if before != nil {
			use(before, now)
		}
		return nil
	}
	for _, segment := range r.segments(id) {
		t := tail{path: segmentPath(r.Dir, id, segment)}
		for more := true; more; {
			used, err := t.lines(eachBytes, take)
			if err != nil {
				return nil, err
			}
			tell(used)
			more = used > 0
		}
		r.Bad += t.bad
	}
	return now, nil
}
