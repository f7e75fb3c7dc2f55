package watch

import (
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
