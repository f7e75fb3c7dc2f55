package trace

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
)

// samples has a decision by each rule.
func samples(others int) (ds []Decision) {
	p := &Placed{Chosen: MoveTo, ChosenTo: 2, Asked: AskKey, Asker: 2, Unmoved: true, Wanted: true, Hot: true, Bid: true, Since: 5, Present: 1<<32 - 1, Pushes: 7}
	for i := range others {
		p.Others = append(p.Others, godwit.NodeID(i))
	}
	return []Decision{
		{Done: MoveTo, To: 2, Placed: p},
		{Done: Stay, To: 1, Placed: &Placed{Asked: AskCopy, Asker: 2, Fixed: true, Full: true, Others: []godwit.NodeID{2}}},
		{Done: AskCopy, To: 1, Learned: &Learned{Copies: true, Known: true, Patience: 9, Cost: 1 << 24, Seen: 3, Pulls: 4, Pushes: 5}},
		{Done: BidFor, To: 1, Learned: &Learned{Asked: true, Full: true}},
		{Done: BidFor, To: 1, Learned: &Learned{Pulls: 3, Pushes: 1}},
		{Done: EndCopy, To: 1, Ended: &EndedWish{Credit: -3, Saves: 2, Saved: 1, Records: 6, Needed: true}},
		{Done: FetchAhead, To: 1, Planned: &Planned{Step: true, Fetched: true, Took: 600_000, Long: 1_000_000, Window: 40}},
		{Done: AskKey, To: 1, Planned: &Planned{Hot: true}},
	}
}

func TestDecisionsAreReadAsTheyWereWritten(t *testing.T) {
	for _, others := range []int{0, 1, 4, 5, 255} {
		dir := t.TempDir()
		w := create(t, dir, 1, true)
		var want []Event
		for i, d := range samples(others) {
			want = append(want, Event{Time: int64(i) * 1000, Key: 7, Clock: 3, Epoch: 9, Node: 1, Peer: 2, Kind: Decided, Decision: &d},
				Event{Time: int64(i) * 1000, Key: 8, Clock: 3, Epoch: 2, Node: 1, Peer: 2, Kind: Asked})
		}
		for _, e := range want {
			w.Add(e)
		}
		closed(t, w)
		if got := all(t, dir, 1); !reflect.DeepEqual(got, want) {
			t.Errorf("with %d others, read\n%+v, want\n%+v", others, got, want)
		}
		b, err := os.ReadFile(filepath.Join(NodeDir(dir, 1), "000001.trace"))
		if err != nil {
			t.Fatal(err)
		}
		if _, got, err := decodeSegment(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("with %d others, decoded\n%+v, want\n%+v (%v)", others, got, want, err)
		}
		// Of what a killed process left there are whole decisions only.
		for n := len(b); n > len(b)-len(want)*RecordLen; n -= 7 {
			_, got, err := decodeSegment(b[:n])
			if err != nil || len(got) > len(want) || !reflect.DeepEqual(got, want[:len(got)]) {
				t.Errorf("of %d bytes %d events were read (%v)", n, len(got), err)
			}
		}
		tr, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		l, err := tr.Life(7)
		if err != nil || len(l.Events) != len(samples(0)) || l.Events[1].Decision == nil {
			t.Errorf("the life has %+v (%v)", l, err)
		}
		var text strings.Builder
		if err := l.Explain(&text, &tr.Header); err != nil {
			t.Fatal(err)
		}
		for _, words := range []string{"moved the key to node 2: of 4294967290 changes since version 5, node 2", "did not announce it in time, made 7", "node 2 asked for a copy", "not announced, or not in time, had cost 16777216", "3 pulls and 1 pushes elsewhere that were not announced, or not in time, and", "512 times the usual", ", while it is not the owner, asks for the key: ", ", while it is not the owner, fetches the value ahead"} {
			if !strings.Contains(text.String(), words) {
				t.Errorf("%q is not in\n%s", words, text.String())
			}
		}
	}
}

// Files of the first version are read, those of a later one are refused.
func TestFormerVersionsAreRead(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 0, true)
	w.Add(Event{Key: 3, Kind: Created})
	closed(t, w)
	path := filepath.Join(NodeDir(dir, 0), "000001.trace")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for version, ok := range []bool{false, true, true, true, true, false} {
		binary.LittleEndian.PutUint32(b[8:], uint32(version))
		if _, events, err := decodeSegment(b); (err == nil && len(events) == 1) != ok {
			t.Errorf("of version %d, %d events were read (%v)", version, len(events), err)
		}
	}
}
