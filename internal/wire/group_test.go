package wire

import (
	"bytes"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

// Records that are appended as groups make the frame that they make one by one.
func TestAGroupIsItsRecords(t *testing.T) {
	r := newRand(t)
	kinds := []Kind{Pull, Push, Set, PullReply, Done, Delta, SyncMark}
	for range 300 {
		var single, grouped Encoder
		single.Reset(nil, 1)
		grouped.Reset(nil, 1)
		var g Group
		for range 1 + r.IntN(12) {
			g.Head = Record{Kind: kinds[r.IntN(len(kinds))], Op: uint64(r.IntN(3))}
			if g.Head.Kind == Push && r.IntN(2) == 0 {
				g.Head.Coding = BF16
			}
			key, index, floats := godwit.Key(wide(r)), uint32(r.IntN(3)), 0
			if fieldsOf[g.Head.Kind]&fVals != 0 {
				floats = r.IntN(4) * r.IntN(300)
			}
			far := r.IntN(3) * r.IntN(1<<r.IntN(40))
			for n := r.IntN(MaxGroup) + 1; n > 0; n-- {
				v := make([]float32, floats)
				for i := range v {
					v[i] = float32(r.IntN(1000))
				}
				if !g.Takes(floats) {
					break
				}
				g.Add(key, index, v)
				key, index = key+1+godwit.Key(far), index+1
				if r.IntN(8) == 0 {
					index += uint32(r.IntN(5))
				}
			}
			for i := range g.Len() {
				x := *g.Record(i)
				single.Append(&x)
			}
			grouped.AppendGroup(&g)
			if g.Empty(); single.Records() != grouped.Records() || single.Len() != grouped.Len() {
				t.Fatalf("%d records of %d bytes, one by one %d of %d", grouped.Records(), grouped.Len(), single.Records(), single.Len())
			}
		}
		if !bytes.Equal(single.Frame(), grouped.Frame()) {
			t.Fatal("groups make another frame")
		}
	}
}

// A group has no room for values of another length, nor for so many floats that a frame would grow far
// beyond its length.
func TestAGroupIsBounded(t *testing.T) {
	var g Group
	for n := 0; g.Takes(100); n++ {
		if n == MaxGroup {
			t.Fatal("more records than a group has")
		}
		g.Add(1, 1, make([]float32, 100))
	}
	if g.Len() != MaxGroup || g.Takes(0) {
		t.Errorf("%d records of 100 floats, want %d", g.Len(), MaxGroup)
	}
	g.Empty()
	if !g.Takes(1 << 20) {
		t.Fatal("no room for one long row")
	}
	g.Add(1, 1, make([]float32, maxGroupFloats/2))
	g.Add(2, 2, make([]float32, maxGroupFloats/2))
	if g.Takes(maxGroupFloats / 2) {
		t.Error("room for more floats than a group may have")
	}
}

// A run that is full goes on in another one, also within a group.
func TestARunEndsWithinAGroup(t *testing.T) {
	var e Encoder
	e.Reset(nil, 1)
	var want []Record
	for len(want) <= maxRun+MaxGroup {
		g := Group{Head: Record{Kind: Done, Op: 7}}
		for g.Takes(0) {
			i := len(want)
			g.Add(godwit.Key(3*i), uint32(i), nil)
			want = append(want, Record{Kind: Done, Op: 7, Key: godwit.Key(3 * i), Index: uint32(i)})
		}
		e.AppendGroup(&g)
	}
	got, err := decode(&Decoder{}, e.Frame())
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, want)
}

// The last entries of a list, behind which there is nothing, are read as those before, however long
// the numbers are that end there.
func TestTheLastEntriesOfAListAreReadAsOthers(t *testing.T) {
	for size := 1; size < maxVarint; size++ {
		keys := []godwit.Key{7, 8, 10 + 1<<(7*size-3), 11 + 1<<(7*size-3), 13 + 2<<(7*size-3)}
		entries := make([]byte, len(keys)*2*maxVarint)
		at, last := 0, first.key
		for i, k := range keys {
			at = putIndexed(entries, at, zigzag(int64(k-last-1)), 1, 1)
			last = k
			for cut := range at {
				d := Decoder{entries: entries[:cut:cut], run: run{fields: fieldsOf[Pull], last: first}}
				if d.batch(make([]godwit.Key, i+1), make([]uint32, i+1)) {
					t.Errorf("%d keys are read from %d of %d bytes", i+1, cut, at)
				}
			}
			d := Decoder{entries: entries[:at:at], run: run{fields: fieldsOf[Pull], last: first}}
			got, indexes := make([]godwit.Key, i+1), make([]uint32, i+1)
			if !d.batch(got, indexes) || !slices.Equal(got, keys[:i+1]) || indexes[i] != uint32(i) {
				t.Errorf("keys %d with indexes %d are read of %d: %v", got, indexes, keys[:i+1], d.err)
			}
		}
	}
}
