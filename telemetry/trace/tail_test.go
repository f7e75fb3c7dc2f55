package trace

import (
	"os"
	"path/filepath"
	"slices"
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
