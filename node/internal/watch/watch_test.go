package watch

import (
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
)

// first returns a key of the sample, or one that is not.
func first(of bool) (k godwit.Key) {
	for k = 1; sampled(k) != of; k++ {
	}
	return k
}

func TestOneOf256KeysIsOfTheSample(t *testing.T) {
	n := 0
	for k := godwit.Key(0); k < 1<<16; k++ {
		if sampled(k) {
			n++
		}
	}
	if n < 1<<8-50 || n > 1<<8+50 {
		t.Errorf("%d of %d keys are sampled", n, 1<<16)
	}
}

// Each step is an event or an access, and the counts say what was in vain.
func TestWhatNobodyAccessedIsWaste(t *testing.T) {
	now, clock := int64(1), godwit.Clock(0)
	w := New(oneTable(), func() int64 { return now }, func() godwit.Clock { return clock })
	k, other := first(true), first(false)
	happens := func(kinds ...protocol.EventKind) {
		for _, x := range kinds {
			w.Happened(protocol.Event{Key: k, Kind: x})
			w.Happened(protocol.Event{Key: other, Kind: x})
		}
	}
	read := func(times int) {
		for range times {
			w.Accessed([]godwit.Key{k, other})
		}
	}
	happens(protocol.Wanted, protocol.Copied) // the copy is read,
	read(1)
	now, clock = now+5000, clock+3
	happens(protocol.Refreshed) // this refresh is not,
	happens(protocol.Refreshed) // and this one is
	read(2)
	happens(protocol.Unwanted, protocol.DropBegun, protocol.Ended)
	happens(protocol.Wanted, protocol.Copied, protocol.Unwanted, protocol.Ended) // all in vain
	happens(protocol.Wanted, protocol.Arrived)
	read(5)
	happens(protocol.Left, protocol.Unwanted)
	read(1) // of a key that is nowhere here
	c := w.Counts()
	want := Counts{Accesses: 9, Refreshes: 4, Unread: 2, Drops: 2, DroppedUnread: 1, Intents: 3, Unused: 1}
	want.Touches.Observe(5)
	want.AgeMicros.Observe(5)
	want.AgeMicros.Observe(0)
	want.AgeInClock.Observe(3)
	want.AgeInClock.Observe(0)
	if c != want {
		t.Errorf("counts are\n%+v, want\n%+v", c, want)
	}
	for i := range w.parts {
		if n := len(w.parts[i].lives); n > 0 {
			t.Errorf("%d keys are remembered of which nothing is here", n)
		}
	}
	var none *Watch
	none.Accessed([]godwit.Key{k})
	if none.Counts() != (Counts{}) {
		t.Error("nobody's counts are not zero")
	}
}

func oneTable() *godwit.Model {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1 << 20, Dim: 1})
	if err != nil {
		panic(err)
	}
	return m
}

func BenchmarkAccessed(b *testing.B) {
	w := New(oneTable(), func() int64 { return 1 }, func() godwit.Clock { return 0 })
	keys := make([]godwit.Key, 1024)
	for i := range keys {
		keys[i] = godwit.Key(i * 7)
		w.Happened(protocol.Event{Key: keys[i], Kind: protocol.Arrived})
	}
	for b.Loop() {
		w.Accessed(keys)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(keys)), "ns/key")
}

// Neither the rows that were read nor those that were not become fewer, as counters of a monitoring system must not.
func TestCountsOfRefreshesOnlyRise(t *testing.T) {
	w := New(oneTable(), func() int64 { return 0 }, func() godwit.Clock { return 0 })
	k := first(true)
	var read, unread uint64
	for i, x := range []protocol.EventKind{protocol.Copied, protocol.Refreshed, protocol.Refreshed, protocol.Ended} {
		w.Happened(protocol.Event{Key: k, Kind: x})
		c := w.Counts()
		if c.Refreshes-c.Unread < read || c.Unread < unread {
			t.Errorf("after event %d, %d rows are read and %d unread; before, %d and %d", i, c.Refreshes-c.Unread, c.Unread, read, unread)
		}
		if read, unread = c.Refreshes-c.Unread, c.Unread; i == 1 {
			w.AccessedOne(k)
		}
	}
	if read != 1 || unread != 2 {
		t.Errorf("%d rows were read and %d were not, want 1 and 2", read, unread)
	}
}

// What happened to keys is counted by their table, of all keys and not of the sample alone.
func TestWhatBecameOfKeysIsCountedByTheirTable(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: 100, Dim: 1}, godwit.Table{Name: "b", Rows: 100, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	w := New(m, func() int64 { return 0 }, func() godwit.Clock { return 0 })
	for table, times := range [][4]int{{1, 2, 3, 4}, {50, 60, 70, 80}} {
		for i, kind := range []protocol.EventKind{protocol.Arrived, protocol.Copied, protocol.Ended, protocol.Refreshed} {
			for n := range times[i] {
				w.Happened(protocol.Event{Key: m.Key(table, uint64(n)), Kind: kind})
			}
		}
	}
	want := []Table{{Moves: 1, Copies: 2, Drops: 3, Refreshes: 4}, {Moves: 50, Copies: 60, Drops: 70, Refreshes: 80}}
	if got := w.Tables(2); !slices.Equal(got, want) {
		t.Errorf("counted are %+v, want %+v", got, want)
	}
	if got := (*Watch)(nil).Tables(2); !slices.Equal(got, make([]Table, 2)) {
		t.Errorf("nobody's counts are %+v", got)
	}
}

// A replica whose key moves here is no more: its last row counts.
func TestARowThatAMoveReplacesIsCounted(t *testing.T) {
	w := New(oneTable(), func() int64 { return 0 }, func() godwit.Clock { return 0 })
	for _, x := range []protocol.EventKind{protocol.Copied, protocol.Arrived} {
		w.Happened(protocol.Event{Key: first(true), Kind: x})
	}
	if c := w.Counts(); c.Refreshes != 1 || c.Unread != 1 {
		t.Errorf("%d rows of replicas were counted, %d unread, want one that nobody read", c.Refreshes, c.Unread)
	}
}

func TestAccessesAreSummedByTableAndPlace(t *testing.T) {
	var a Accesses
	a.Count(2)
	a.Served(0, &[3]uint64{protocol.AtOwner: 5})
	a.Served(1, &[3]uint64{protocol.AtOwner: 1, protocol.AtReplica: 2, protocol.Elsewhere: 4})
	a.One(1, protocol.AtReplica)
	a.Elsewhere(1, 2, 3)
	all, tables := Table{Local: 100}, make([]Table, 2)
	a.Sum(&all, tables)
	if want := (Table{Local: 106, Replica: 3, Elsewhere: 4, Ahead: 1, Queued: 2, Remote: 3}); all != want {
		t.Errorf("all tables have %+v, want %+v", all, want)
	}
	if want := []Table{{Local: 5}, {Local: 1, Replica: 3, Elsewhere: 4}}; !slices.Equal(tables, want) {
		t.Errorf("the tables have %+v, want %+v", tables, want)
	}
	var none *Watch
	if none.With(nil) != nil {
		t.Error("nobody is told what happens")
	}
	w := New(oneTable(), func() int64 { return 0 }, func() godwit.Clock { return 0 })
	w.With(nil)(protocol.Event{Kind: protocol.Arrived})
	if got := w.Tables(1)[0].Moves; got != 1 {
		t.Errorf("a watch without a tracer heard of %d moves, want 1", got)
	}
}
