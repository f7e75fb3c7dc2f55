package link

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
)

// What is gathered arrives as it was when it was sent, and in that order at each peer.
func TestWhatIsGatheredIsSentInOrder(t *testing.T) {
	const peers = 3
	rng := rand.New(rand.NewPCG(*roomtest.Seed, 1))
	ls := imagined(1 + peers)
	var own []wire.Record
	ls.Answered = func(_ godwit.NodeID, rs ...wire.Record) { own = append(own, rs...) }
	s := ls.Sender()
	var want, got [1 + peers][]wire.Record
	scratch := make([]float32, 3000)
	holders := make([]wire.Holder, 2)
	for range 50 {
		if rng.IntN(4) > 0 {
			s.Gather()
		}
		for range rng.IntN(300) {
			to := rng.IntN(1 + peers)
			r := wire.Record{Kind: wire.Refresh, Key: godwit.Key(rng.IntN(1000)), Epoch: 1, Version: godwit.Version(rng.IntN(100)), Seq: rng.Uint64() >> 1}
			r.Vals = scratch[:1+rng.IntN(10)]
			if rng.IntN(50) == 0 {
				r.Vals = scratch[:1+rng.IntN(len(scratch))]
			}
			for i := range r.Vals {
				r.Vals[i] = rng.Float32()
			}
			if rng.IntN(10) == 0 {
				r.Kind, r.Seq, r.Holders = wire.Transfer, 0, holders
				for i := range holders {
					holders[i] = wire.Holder{Node: godwit.NodeID(i), Seq: rng.Uint64() >> 1, Version: 7}
				}
			}
			copied := r
			copied.Vals = append([]float32(nil), r.Vals...)
			copied.Holders = append([]wire.Holder(nil), r.Holders...)
			want[to] = append(want[to], copied)
			s.Send(godwit.NodeID(to), &r)
			if to == 0 {
				own[len(own)-1].Vals = copied.Vals
				own[len(own)-1].Holders = copied.Holders
			}
		}
		s.GatherEnd()
		s.Flush()
		for to := 1; to <= peers; to++ {
			d := wire.Decoder{Lists: &wire.Known{}}
			got[to] = append(got[to], roomtest.Records(t, &d, ls.To(godwit.NodeID(to)).Take)...)
		}
	}
	got[0] = own
	sent := 0
	for to := range want {
		if len(got[to]) != len(want[to]) {
			t.Fatalf("-seed %d: %d of %d records come to node %d", *roomtest.Seed, len(got[to]), len(want[to]), to)
		}
		for i := range want[to] {
			g, w := got[to][i], want[to][i]
			g.Holders, w.Holders = append([]wire.Holder(nil), g.Holders...), append([]wire.Holder(nil), w.Holders...)
			if !reflect.DeepEqual(g, w) {
				t.Fatalf("-seed %d: record %d to node %d is %+v, want %+v", *roomtest.Seed, i, to, g, w)
			}
		}
		if to > 0 {
			sent += len(want[to])
		}
	}
	if s.Records != sent {
		t.Errorf("-seed %d: %d records count as sent, want %d", *roomtest.Seed, s.Records, sent)
	}
}

// Records that are gathered take the room of a queue as those in it do, whatever they count until they are there.
func TestWhatIsGatheredTakesRoom(t *testing.T) {
	for _, floats := range []int{1, 100} {
		room := func(gathers bool) (n int) {
			limits := host.Usual
			limits.Copies = 10_000
			ls := New(host.New(host.Real()), 0, 2, 1, limits, filter.Compress{}, host.NewBell())
			ls.Imagine(1, func() {})
			s := ls.Sender()
			if gathers {
				s.Gather()
			}
			r := wire.Record{Kind: wire.Refresh, Vals: make([]float32, floats)}
			for ; s.Room(1); n++ {
				if n > 10_000 {
					t.Fatal("there is room without end")
				}
				r.Key = godwit.Key(7 * n)
				s.Send(1, &r)
			}
			if !s.Full(1) || s.Rooms() {
				t.Error("that there is no room is not noted")
			}
			s.GatherEnd()
			for len(ls.To(1).Take(nil)) > 0 {
			}
			s.ForgetFull()
			s.Gather()
			if !s.Rooms() || !s.Room(1) || s.Full(1) {
				t.Error("a queue that is empty has no room")
			}
			s.GatherEnd()
			return n
		}
		one, several := room(false), room(true)
		if one < 20 || several < one*9/10 || several > one {
			t.Errorf("there is room for %d records of %d floats one by one, and for %d that are gathered", one, floats, several)
		}
	}
}

// Goroutines that gather put all into the queues.
func TestSeveralGoroutinesGather(t *testing.T) {
	const senders, records = 4, 20_000
	ls := imagined(3)
	out := ls.Sender()
	each := make([]Sender, senders)
	var all sync.WaitGroup
	for i := range each {
		each[i] = ls.Sender()
		all.Go(func() {
			s := &each[i]
			for n := range records {
				if n%200 == 0 {
					s.GatherEnd()
					s.Gather()
				}
				s.Send(godwit.NodeID(1+n%2), &wire.Record{Kind: wire.Ack, Key: godwit.Key(i), Seq: uint64(n)})
				if len(s.batches[1].recs) > gathered {
					t.Errorf("%d records are gathered", len(s.batches[1].recs))
					return
				}
			}
			s.GatherEnd()
		})
	}
	all.Wait()
	for i := range each {
		out.Join(&each[i])
	}
	out.Flush()
	if out.Records != senders*records {
		t.Errorf("%d records count as sent, want %d", out.Records, senders*records)
	}
	for to := 1; to < 3; to++ {
		d := wire.Decoder{Lists: &wire.Known{}}
		var next [senders]int
		for i := range next {
			next[i] = to - 1
		}
		for _, r := range roomtest.Records(t, &d, ls.To(godwit.NodeID(to)).Take) {
			if int(r.Seq) != next[r.Key] {
				t.Fatalf("record %d of sender %d comes to node %d, want %d", r.Seq, r.Key, to, next[r.Key])
			}
			next[r.Key] += 2
		}
		for i, n := range next {
			if n < records {
				t.Errorf("of sender %d, node %d gets the records up to %d", i, to, n)
			}
		}
	}
}

// Who joins another sender has to flush what that has put in, and knows for whom it found no room.
func TestASenderTakesOverWhatAnotherHasLeft(t *testing.T) {
	limits := host.Usual
	limits.Copies = 1
	ls := New(host.New(host.Real()), 0, 4, 1, limits, filter.Compress{}, host.NewBell())
	var flushed [4]int
	for i := 1; i < 4; i++ {
		ls.Imagine(godwit.NodeID(i), func() { flushed[i]++ })
	}
	a, b := ls.Sender(), ls.Sender()
	a.Send(1, &wire.Record{Kind: wire.Ack, Key: 1})
	b.Send(2, &wire.Record{Kind: wire.Ack, Key: 2})
	if b.Room(2) || !b.Full(2) {
		t.Fatal("there is room where there is none")
	}
	a.Join(&b)
	if b.Any() || b.Full(2) || b.Records != 0 || !a.Full(2) || a.Full(1) || a.Records != 2 {
		t.Errorf("the senders are %+v and %+v", a, b)
	}
	b.Flush()
	a.Flush()
	b.Keep()
	b.Send(3, &wire.Record{Kind: wire.Ack, Key: 3})
	if a.Join(&b); b.Kept() || b.keeps {
		t.Error("a sender that another has joined keeps a queue")
	}
	a.Flush()
	if flushed != [4]int{0, 1, 1, 1} {
		t.Errorf("peers are flushed %v times", flushed)
	}
}

// So many records and values are gathered, and no more; one that has more values by itself is.
func TestWhatIsGatheredIsBounded(t *testing.T) {
	values := func(n int) *wire.Record { return &wire.Record{Kind: wire.Refresh, Vals: make([]float32, n)} }
	for what, x := range map[string]struct {
		fits []*wire.Record
		more *wire.Record
	}{
		"records":     {slices.Repeat([]*wire.Record{ack(1)}, gathered), ack(1)},
		"values":      {[]*wire.Record{values(1), values(gatheredFloats - 1)}, values(1)},
		"many values": {[]*wire.Record{values(2 * gatheredFloats)}, ack(1)},
	} {
		ls := imagined(2)
		o, s := ls.To(1), ls.Sender()
		s.Gather()
		for _, r := range x.fits {
			if s.Send(1, r); o.enc.Records() > 0 {
				t.Fatalf("%s: what fits is not gathered", what)
			}
		}
		if s.Send(1, x.more); o.enc.Records() != len(x.fits) {
			t.Errorf("%s: %d records are in the queue, want all before the last one", what, o.enc.Records())
		}
		if n := len(x.fits); n < maxKept && s.left != maxKept-n {
			t.Errorf("%s: the queue was locked more than once for %d records", what, n)
		}
		if s.GatherEnd(); o.enc.Records() != len(x.fits)+1 {
			t.Errorf("%s: %d records are in the queue at the end, want all", what, o.enc.Records())
		}
		if s.Send(1, ack(1)); o.enc.Records() != len(x.fits)+2 || s.Kept() {
			t.Errorf("%s: a sender that gathers no more does, or keeps the queue: %v", what, s.Kept())
		}
	}
}

// Who gathers looks at a queue once, and again when it has put records in, and when it gathers anew. What it has gathered takes room, also from before it looked.
func TestWhoGathersLooksAtAQueueNowAndThen(t *testing.T) {
	limits := host.Usual
	limits.Copies = 1000
	ls := bounded(2, limits)
	o, s := ls.To(1), ls.Sender()
	o.pace.each = 50 // 1000 bytes take 50 µs
	s.Gather()
	if !s.Room(1) || s.Crowded(1) || s.Crowded(0) || s.Kept() {
		t.Errorf("an empty queue has room: %v, is crowded: %v, is kept: %v", s.Room(1), s.Crowded(1), s.Kept())
	}
	o.Push(make([]byte, 2000))
	if !s.Room(1) || s.Crowded(1) {
		t.Error("it looks again though it has put nothing in")
	}
	s.GatherEnd()
	s.Gather()
	if s.Room(1) || !s.Crowded(1) {
		t.Error("it does not look again when it gathers anew")
	}
	s.GatherEnd()
	for o.Take(nil); len(o.Take(nil)) > 0; {
	}
	s.Gather()
	s.Send(1, &wire.Record{Kind: wire.Refresh, Vals: make([]float32, 300)})
	if s.Room(1) {
		t.Error("what was gathered before it looked takes no room")
	}
	s.GatherEnd()
}

// What is gathered goes into the queue when it has filled the room by what it counts: there it takes less.
func TestWhatIsGatheredCountsLessInTheQueue(t *testing.T) {
	for what, x := range map[string]struct {
		acks, room int // bytes of room for copies
		looked     bool
		queued     int // records, when it has looked for room
		has        bool
	}{
		"none":                {0, 100, true, 0, true},
		"none, and no room":   {0, 0, true, 0, false},
		"one":                 {1, recordBytes + 1, true, 0, true},
		"one that fills it":   {1, recordBytes, true, 1, true},
		"two":                 {2, 2*recordBytes - 1, true, 2, true},
		"before it looked":    {20, 1000, false, 20, true},
		"little":              {20, 20*recordBytes + 1, false, 0, true},
		"less than they take": {20, 1, true, 20, false},
	} {
		limits := host.Usual
		limits.Copies = x.room + 1000
		ls := bounded(2, limits)
		o, s := ls.To(1), ls.Sender()
		o.Push(make([]byte, 1000))
		s.Gather()
		if x.looked {
			s.Room(1)
		}
		for i := range x.acks {
			s.Send(1, ack(i))
		}
		if has := s.Room(1); has != x.has || o.enc.Records() != x.queued {
			t.Errorf("%s: there is room: %v, with %d records in the queue; want %d", what, has, o.enc.Records(), x.queued)
		}
		if x.has {
			continue
		}
		if o.Take(nil); s.Room(1) {
			t.Errorf("%s: it looks again though it has put nothing in", what)
		}
	}
}
