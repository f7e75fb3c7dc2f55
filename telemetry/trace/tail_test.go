package trace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
)

// Whatever part of a segment is on the disk when it is looked at, all events are read, once each.
func TestATailReadsWhatIsAddedByteByByte(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	w := create(t, from, 1, true)
	var want []godwit.Key
	for k := range godwit.Key(5) {
		w.Add(Event{Key: k, Node: 1, Kind: Created})
		want = append(want, k)
	}
	closed(t, w)
	b, err := os.ReadFile(filepath.Join(NodeDir(from, 1), SegmentName(1)))
	if err != nil {
		t.Fatal(err)
	}
	tail := NewTail(to, 1)
	defer func() {
		if err := tail.Close(); err != nil {
			t.Error(err)
		}
	}()
	var got []godwit.Key
	read := func() {
		if _, err := tail.Read(func(e *Event) { got = append(got, e.Key) }); err != nil {
			t.Fatal(err)
		}
	}
	read() // there is no folder
	if err := os.Mkdir(NodeDir(to, 1), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(NodeDir(to, 1), SegmentName(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for len(b) > 0 {
		n := min(7, len(b))
		if _, err := f.Write(b[:n]); err != nil {
			t.Fatal(err)
		}
		b = b[n:]
		read()
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}

// A Copier skips what is more than two segments behind, and nothing before that.
func TestACopierSkipsWhatIsMoreThanTwoSegmentsBehind(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 1, true)
	c := NewCopier(dir, 1, false)
	for i := range 5 {
		w.Add(Event{Key: 1, Node: 1, Kind: Asked, Time: int64(i) * (1<<32*1000/2 + 1000)})
		w.Flush()
		if err := c.Skip(); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]uint64{true: 3}[i >= 3]; c.Skipped() != want {
			t.Errorf("with %d segments, %d events are skipped, want %d", i+1, c.Skipped(), want)
		}
	}
	closed(t, w)
	p, err := c.Next(1000)
	if err != nil {
		t.Fatal(err)
	}
	h, records, err := p.Open()
	if err != nil || h.Segment != 1 || p.Skipped != 3 {
		t.Fatalf("the first piece is of segment %d and counts %d events as lost (%v)", h.Segment, p.Skipped, err)
	}
	if r := Record(records); r.Kind() != Lost || r.Number() != 3 || r.Micros() != 0 {
		t.Errorf("it begins with %v of %d after %d µs", r.Kind(), r.Number(), r.Micros())
	}
	if n, err := c.End(); err != nil || n != 1 {
		t.Errorf("%d events were not read (%v)", n, err)
	}
}

// A Copier reads one segment after the other, and its pieces are segments of the same numbers.
func TestACopierReadsAllSegments(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 1, true)
	for i := range 3 {
		w.Add(Event{Key: 1, Node: 1, Kind: Asked, Time: int64(i) * (1<<32*1000/2 + 1000)})
		w.Flush()
	}
	closed(t, w)
	c := NewCopier(dir, 1, false)
	for want := 1; want <= 4; want++ {
		p, err := c.Next(1000)
		if err != nil {
			t.Fatal(err)
		}
		if want == 4 {
			if len(p.Data) > 0 {
				t.Errorf("behind the last segment there are %d bytes", len(p.Data))
			}
			break
		}
		h, records, err := p.Open()
		if err != nil || h.Segment != want || p.Segment != want || len(records) != RecordLen || Record(records).Kind() != Asked {
			t.Fatalf("piece %d is of segment %d, and has %d bytes of records (%v)", want, h.Segment, len(records), err)
		}
	}
	if n, err := c.End(); err != nil || n != 0 {
		t.Errorf("%d events were not read (%v)", n, err)
	}
}

// Keys are named by their numbers in the model, and by table and row.
func TestAKeyIsReadByItsNumberOrItsRow(t *testing.T) {
	tables := []Table{{Name: "a", First: 0, Rows: 10}, {Name: "b", First: 10, Rows: 5}}
	for text, want := range map[string]godwit.Key{"0": 0, "9": 9, "10": 10, "14": 14, "a:9": 9, "b:0": 10, "b:4": 14} {
		if k, err := ParseKey(text, tables); err != nil || k != want {
			t.Errorf("%q is key %d, %v, want %d", text, k, err, want)
		}
	}
	for text, want := range map[string]string{"15": "no key of that number", "b:5": "rows 0 … 4", "c:0": "there are a, b"} {
		if k, err := ParseKey(text, tables); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is key %d, %v, want an error with %q", text, k, err, want)
		}
	}
}

// Check refuses keys of no table and nodes that are not in the run, and nothing else.
func TestRecordsAreChecked(t *testing.T) {
	h := Header{Nodes: 3, Tables: []Table{{Name: "a", First: 0, Rows: 10}, {Name: "b", First: 10, Rows: 5}}}
	record := func(k godwit.Key, kind Kind, peer godwit.NodeID) []byte {
		return (&Event{Key: k, Kind: kind, Peer: peer}).append(nil, 0)
	}
	for _, c := range []struct {
		records []byte
		good    bool
	}{
		{nil, true}, {record(14, Created, 2), true}, {record(15, Created, 2), false}, {record(14, Created, 3), false}, {record(1<<40, Lost, 0), true}, {record(0, Thinned, 3), false},
		{record(1<<40, Input, 200), true}, {record(1<<40, 200, 200), true}, {append(record(1, Asked, 0), record(15, Asked, 0)...), false},
	} {
		if err := h.Check(c.records); err == nil != c.good {
			t.Errorf("%v: %v", c.records, err)
		}
	}
	for start, good := range map[int64]bool{-1: false, 0: true, MaxStart: true, MaxStart + 1: false} {
		b, err := (&Header{Nodes: 1, Start: start}).encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := decodeHeader(b); err == nil != good {
			t.Errorf("a trace that begins at %d: %v", start, err)
		}
	}
}
