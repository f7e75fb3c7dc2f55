package link

import (
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
)

// bounded returns links of node 0 of several whose frames nobody takes.
func bounded(nodes int, limits host.Limits) *Links {
	ls := New(host.New(host.Real()), 0, nodes, 1, limits, filter.Compress{}, host.NewBell())
	for i := 1; i < nodes; i++ {
		ls.Imagine(godwit.NodeID(i), func() {})
	}
	return ls
}

// ack is a short record.
func ack(n int) *wire.Record { return &wire.Record{Kind: wire.Ack, Key: godwit.Key(n), Seq: 1} }

// A sender that keeps queues lets others have one after 64 records, with a full frame, and for a record to another peer.
func TestAKeptQueueIsLetGo(t *testing.T) {
	ls := imagined(3)
	s := ls.Sender()
	if s.Send(1, ack(0)); s.Kept() {
		t.Error("a sender keeps a queue though it was not asked to")
	}
	for range 2 {
		s.Keep()
		for i := range maxKept {
			if s.Send(1, ack(i)); s.Kept() != (i < maxKept-1) {
				t.Fatalf("after %d records, a queue is kept: %v", i+1, s.Kept())
			}
		}
	}
	var g wire.Group
	for i := range 8 { // 64 records, too
		for k := range godwit.Key(8) {
			g.Head = wire.Record{Kind: wire.Pull, Op: 1}
			g.Add(k, uint32(k), nil)
		}
		if s.SendGroup(1, &g); s.Kept() != (i < 7) {
			t.Fatalf("after %d groups of 8, a queue is kept: %v", i+1, s.Kept())
		}
	}
	s.Send(1, ack(0))
	if s.Takes(1); !s.Kept() {
		t.Error("a queue is let go that is looked at")
	}
	if s.Takes(2); s.Kept() {
		t.Error("a queue is kept while another is looked at")
	}
	s.Send(1, ack(0))
	if s.Send(2, ack(0)); s.kept != ls.To(2) || !ls.To(1).mu.TryLock() {
		t.Fatal("the queue to one peer is kept while another's is used")
	}
	ls.To(1).mu.Unlock()
	if s.Send(2, &wire.Record{Kind: wire.Delta, Vals: make([]float32, host.Usual.Frame/4)}); s.Kept() {
		t.Error("a queue is kept of which a frame is full")
	}
	s.Send(2, ack(0))
	if s.Release(); s.Kept() || s.keeps {
		t.Error("a queue is kept after Release")
	}
	s.Keep()
	s.Send(2, ack(0))
	if s.Flush(); s.Kept() || s.keeps {
		t.Error("a queue is kept after a flush")
	}
}

// What a node sends to itself is taken at once, and needs no flush; what is in a group arrives as if it had been sent one by one.
func TestRecordsOfAGroupAreSentLikeOthers(t *testing.T) {
	ls := imagined(2)
	var own []wire.Record
	ls.Answered = func(from godwit.NodeID, rs ...wire.Record) {
		if from != 0 {
			t.Errorf("a record to node 0 comes from node %d", from)
		}
		own = append(own, rs...)
	}
	s := ls.Sender()
	g := wire.Group{Head: wire.Record{Kind: wire.PullReply, Op: 5}}
	s.SendGroup(1, &g)
	if s.Any() || s.Records != 0 {
		t.Error("a group without records is something to send")
	}
	for to := range godwit.NodeID(2) {
		for i := range 3 {
			g.Add(godwit.Key(10+i), uint32(i), []float32{float32(i)})
		}
		if s.SendGroup(to, &g); g.Len() != 0 {
			t.Errorf("%d records stay in a group that was sent", g.Len())
		}
		if sent := 3 * int(to); s.Records != sent || s.Any() != (to > 0) {
			t.Errorf("%d records count as sent to others, want %d", s.Records, sent)
		}
	}
	s.Flush()
	d := wire.Decoder{Lists: &wire.Known{}}
	for to, rs := range [][]wire.Record{own, roomtest.Records(t, &d, ls.To(1).Take)} {
		if len(rs) != 3 {
			t.Fatalf("%d records come to node %d, want 3", len(rs), to)
		}
		for i, r := range rs {
			if r.Key != godwit.Key(10+i) || r.Op != 5 || r.Index != uint32(i) || len(r.Vals) != 1 || r.Vals[0] != float32(i) {
				t.Errorf("record %d to node %d is %+v", i, to, r)
			}
		}
	}
}

// A peer for which more answers are queued than it may ask for is told of; other records count for nothing.
func TestAPeerThatAsksForTooMuchIsNoted(t *testing.T) {
	limits := host.Usual
	limits.Owed = 1000
	for _, x := range []struct {
		bytes   int
		flooded godwit.NodeID
	}{{1000, godwit.NoNode}, {1001, 2}} {
		ls := bounded(3, limits)
		s := ls.Sender()
		s.Send(1, &wire.Record{Kind: wire.Delta, Vals: make([]float32, 1000)})
		s.Send(2, ack(0))
		ls.To(2).Answer(make([]byte, x.bytes-1-ls.To(2).owed))
		before := ls.To(2).owed
		s.Send(1, ack(0))
		s.Send(2, &wire.Record{Kind: wire.Delta, Vals: make([]float32, 1000)})
		if s.Flooded != godwit.NoNode || before != x.bytes-1 || ls.To(2).Owes(x.bytes-1) || !ls.To(2).Owes(x.bytes-2) {
			t.Fatalf("%d bytes of answers wait, and node %d is flooded", before, s.Flooded)
		}
		ls.To(2).Answer(make([]byte, 1))
		if s.Send(2, &wire.Record{Kind: wire.Delta}); s.Flooded != x.flooded {
			t.Errorf("with %d bytes of answers node %d is flooded, want %d", x.bytes, s.Flooded, x.flooded)
		}
	}
}

// Answers that are records are owed until their frame is taken.
func TestAnswersAreOwedUntilTheyLeave(t *testing.T) {
	o := imagined(2).To(1)
	asked := []wire.Kind{wire.PullReply, wire.Done, wire.Refresh, wire.Transfer, wire.Refuse, wire.Ack, wire.Dropped, wire.InUse, wire.Scanned, wire.SyncAck, wire.BidReply, wire.RoundDone}
	for kind := wire.Kind(1); int(kind) < wire.Kinds; kind++ {
		o.put(&wire.Record{Kind: kind, Key: 1, Op: 1, Seq: 1, Epoch: 1, Version: 1})
		if o.Owes(0) != slices.Contains(asked, kind) {
			t.Errorf("a record of kind %v is owed: %v", kind, o.Owes(0))
		}
		o.Flush()
		if o.Take(nil); o.owed != 0 || o.owing != 0 || o.queued != 0 {
			t.Fatalf("%d and %d bytes are owed, and %d queued, in an empty queue", o.owed, o.owing, o.queued)
		}
	}
}

// A sender flushes, or posts, to those to whom it has sent something, once; and knows whether that is only one.
func TestASenderFlushesWhomItSentSomething(t *testing.T) {
	for what, flush := range map[string]func(*Sender){"flush": (*Sender).Flush, "post": (*Sender).Post, "drain": func(s *Sender) { s.Drain(false) }} {
		ls := New(host.New(host.Real()), 0, 4, 1, host.Usual, filter.Compress{}, host.NewBell())
		var flushed [4]int
		for i := 1; i < 4; i++ {
			ls.Imagine(godwit.NodeID(i), func() { flushed[i]++ })
		}
		s := ls.Sender()
		if flush(&s); s.Any() || s.Sole() != godwit.NoNode || flushed != [4]int{} {
			t.Errorf("%s: a sender of nothing has something to send: %v", what, flushed)
		}
		s.Send(2, ack(1))
		if s.Send(2, ack(2)); !s.Any() || s.Sole() != 2 {
			t.Errorf("%s: the only peer is %d, want 2", what, s.Sole())
		}
		if s.Touch(3); s.Sole() != godwit.NoNode {
			t.Errorf("%s: the only one of two peers is %d", what, s.Sole())
		}
		flush(&s)
		if flush(&s); s.Any() || s.Sole() != godwit.NoNode || flushed != [4]int{2: 1, 3: 1} {
			t.Errorf("%s: peers are flushed %v times, want the second and third once", what, flushed)
		}
		if len(ls.To(2).Take(nil)) == 0 || len(ls.To(2).Take(nil)) > 0 {
			t.Errorf("%s: the records do not leave in a frame", what)
		}
	}
}

// The time is that of the first question since the last flush.
func TestTheTimeIsThatOfTheFirstQuestion(t *testing.T) {
	w := &timed{World: host.Real(), now: 1}
	ls := New(host.New(w), 0, 1, 1, host.Usual, filter.Compress{}, host.NewBell())
	s, other := ls.Sender(), ls.Sender()
	for range 2 {
		first := w.now
		for range 2 {
			if now := s.Now(); now != first {
				t.Errorf("it is %d, want %d", now, first)
			}
			w.now++
		}
		s.Flush()
	}
	other.Now()
	s.Join(&other)
	if w.now++; other.Now() != w.now {
		t.Error("a sender that another has joined still has the time of before")
	}
}

// Answers that can wait do so while more is queued than they may wait behind.
func TestAnswersThatCanWaitDoWhereMuchIsQueued(t *testing.T) {
	limits := host.Usual
	limits.Answers, limits.Copies = 1000, 500
	ls := bounded(3, limits)
	s := ls.Sender()
	put := func(bytes int) {
		o := ls.To(1)
		o.mu.Lock()
		o.queued = bytes
		o.mu.Unlock()
	}
	for _, x := range []struct {
		bytes        int
		takes, copes bool
	}{{0, true, true}, {499, true, true}, {500, true, false}, {999, true, false}, {1000, false, false}} {
		put(x.bytes)
		s.ForgetFull()
		if s.Takes(1) != x.takes || s.Room(1) != x.copes || s.Full(1) == x.copes || !s.Takes(2) || s.Full(2) {
			t.Errorf("with %d bytes queued answers go in: %v, copies: %v, noted: %v", x.bytes, s.Takes(1), s.Room(1), s.Full(1))
		}
		if ls.To(1).Room(1000) != x.takes {
			t.Errorf("with %d bytes queued there is room for 1000: %v", x.bytes, !x.takes)
		}
	}
	s.ForgetFull()
	if !s.Rooms() || s.Full(1) || s.Full(2) {
		t.Error("there is no room for anybody, though one peer takes all")
	}
	ls.To(2).Push(make([]byte, 1000))
	if s.Rooms() || !s.Full(1) || !s.Full(2) || s.Full(0) {
		t.Error("that there is no room for anybody is not noted for all others")
	}
	if s.ForgetFull(); s.Full(1) || s.Full(2) {
		t.Error("it is noted still")
	}
}

// A simulation may say whether bytes bound all ways, but that of a node to itself.
func TestASimulationSaysWhetherBytesBoundTheWays(t *testing.T) {
	ls := imagined(2)
	s := ls.Sender()
	for _, strained := range []bool{true, false} {
		ls.Strains = func() bool { return strained }
		for range 2 {
			if s.Strained(1) != strained || s.Crowded(1) != strained || s.StrainedBy(0) != strained || s.Strained(0) || s.Crowded(0) {
				t.Errorf("bytes bound the ways: %v, want %v", s.Strained(1), strained)
			}
			s.Gather()
		}
		s.GatherEnd()
	}
}

func TestAPeerMayRest(t *testing.T) {
	ls := imagined(2)
	s := ls.Sender()
	for _, rests := range []bool{false, true, false} {
		if ls.To(1).Rest(rests); s.Rests(1) != rests || s.Rests(0) {
			t.Errorf("a peer rests: %v, this node: %v", s.Rests(1), s.Rests(0))
		}
	}
}

// Who drains and has sent no full frame leaves all to the end.
func TestWhoDrainsLeavesFramesThatAreNotFull(t *testing.T) {
	c := &line{free: 100}
	ls := lined(c, host.Usual, filter.Compress{})
	s := ls.Drains()
	fill := func() { s.Send(1, &wire.Record{Kind: wire.Delta, Vals: make([]float32, host.Usual.Frame/4)}) }
	s.Send(1, &wire.Record{Kind: wire.Delta, Vals: make([]float32, joinBytes)})
	if s.Drain(true); len(c.frames) != 0 {
		t.Error("a frame left that is not full")
	}
	if s.Drain(false); len(c.frames) != 1 || s.Any() {
		t.Errorf("%d frames left of one that was drained", len(c.frames))
	}
	fill()
	s.Keep()
	s.Send(1, ack(1))
	if s.Drain(true); s.Kept() || len(c.frames) != 2 || !s.Any() || s.filled {
		t.Errorf("a queue is kept: %v, and %d frames left, want the full one", s.Kept(), len(c.frames))
	}
	s.Release()
	if s.Drain(false); len(c.frames) != 3 || ls.To(1).queued != 0 {
		t.Errorf("%d frames left of 3, and %d bytes are queued", len(c.frames), ls.To(1).queued)
	}
	fill()
	if s.Drain(false); s.filled {
		t.Error("a sender that drained all looks for full frames")
	}
	s.Send(1, &wire.Record{Kind: wire.Delta, Vals: make([]float32, joinBytes)})
	if s.Drain(true); len(c.frames) != 4 {
		t.Error("a frame left that is not full, after all was drained")
	}
}
