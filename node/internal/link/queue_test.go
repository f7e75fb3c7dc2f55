package link

import (
	"bytes"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
)

// sized returns a record that takes so many bytes of a frame that begins with it.
func sized(t *testing.T, bytes int) *wire.Record {
	for n := bytes/4 - 10; n <= bytes/4; n++ {
		for key := godwit.Key(1); key < 1<<40; key <<= 7 {
			var e wire.Encoder
			e.Reset(nil, 1)
			r := &wire.Record{Kind: wire.Delta, Key: key, Vals: make([]float32, n)}
			if e.Append(r); e.Len() == bytes {
				return r
			}
		}
	}
	t.Fatalf("no record takes %d bytes", bytes)
	return nil
}

// A frame is full when it is as long as the limits say, and then waits for no flush.
func TestAFrameIsFullAtItsLimit(t *testing.T) {
	limits := host.Usual
	limits.Frame = 1000
	for _, bytes := range []int{999, 1000} {
		flushed := 0
		ls := New(host.New(host.Real()), 0, 2, 1, limits, filter.Compress{}, host.NewBell())
		ls.Imagine(1, func() { flushed++ })
		o, s := ls.To(1), ls.Sender()
		s.Send(1, sized(t, bytes))
		if full := bytes == 1000; (flushed == 1) != full || (len(o.Take(nil)) > 0) != full {
			t.Errorf("a frame of %d bytes is sent at once: %v", bytes, flushed == 1)
		}
	}
}

// A frame that is being filled leaves without a flush when it has 8 KiB, but only where not only complete ones are asked for.
func TestALongFrameIsNotJoined(t *testing.T) {
	for _, bytes := range []int{joinBytes - 1, joinBytes} {
		o := imagined(2).To(1)
		o.put(sized(t, bytes))
		if f := o.next(true); f != nil {
			t.Errorf("a frame of %d bytes is complete", bytes)
		}
		if f := o.next(false); (f != nil) != (bytes == joinBytes) {
			t.Errorf("a frame of %d bytes leaves: %v", bytes, f != nil)
		}
	}
}

// The newest heartbeat takes the place of one that has not left, and goes before all else.
func TestOneHeartbeatWaitsAtTheMost(t *testing.T) {
	flushed := 0
	ls := New(host.New(host.Real()), 0, 2, 1, host.Usual, filter.Compress{}, host.NewBell())
	ls.Imagine(1, func() { flushed++ })
	o := ls.To(1)
	if o.Push(wire.Ask{Number: 1}.Frame()); o.Owes(0) {
		t.Error("a question is an answer")
	}
	before := o.Counts().Queued
	for i := range uint64(2) {
		if o.Beat(wire.Heartbeat{Arrived: 7 + i}); flushed != 1+int(i) || o.Counts().Queued != before+wire.HeartbeatLen {
			t.Errorf("heartbeat %d: %d flushes, %d bytes are queued behind %d", i+1, flushed, o.Counts().Queued, before)
		}
	}
	if h, err := wire.ParseHeartbeat(o.Take(nil)); err != nil || h.Arrived != 8 {
		t.Errorf("first came %+v, %v; want the second heartbeat", h, err)
	}
	if f := o.Take(nil); !wire.IsAsk(f) || len(o.Take(nil)) > 0 || o.Counts().Queued != 0 || o.Counts().Frames != 2 {
		t.Errorf("then came %q, and the counts are %+v; want the question only", f, o.Counts())
	}
	if n := uint64(len(wire.Ask{}.Frame())); o.Payload() != n {
		t.Errorf("without heartbeats %d bytes were sent, want %d", o.Payload(), n)
	}
}

// What is put in after the goodbye was taken stays, and counts no less than nothing.
func TestNothingLeavesAfterTheGoodbye(t *testing.T) {
	flushed := 0
	ls := New(host.New(host.Real()), 0, 2, 1, host.Usual, filter.Compress{}, host.NewBell())
	ls.Imagine(1, func() { flushed++ })
	o := ls.To(1)
	if o.Goodbye(); flushed != 1 || o.Counts().Queued != len(wire.Goodbye(1)) || o.Owes(0) {
		t.Errorf("a goodbye is flushed %d times, %d bytes are queued, and it is an answer: %v", flushed, o.Counts().Queued, o.Owes(0))
	}
	if f := o.Take(nil); wire.CheckGoodbye(f) != nil || o.Counts().Queued != 0 {
		t.Errorf("first came %q, and %d bytes are queued; want a goodbye", f, o.Counts().Queued)
	}
	o.put(ack(1))
	o.Push(wire.Ask{}.Frame())
	o.Beat(wire.Heartbeat{})
	if f := o.Take(nil); len(f) > 0 {
		t.Errorf("after the goodbye came %q", f)
	}
}

// Spare memory of frames is used again, but not without bound.
func TestSpareMemoryIsBounded(t *testing.T) {
	var b buffers
	if b.take() != nil {
		t.Error("there is memory that nobody gave")
	}
	b.give(make([]byte, 10, 2*frameBytes))
	if b.give(make([]byte, 10, 2*frameBytes+1)); cap(b.take()) != 2*frameBytes || b.take() != nil {
		t.Error("of a frame of the usual length and one that is longer, the first is kept only")
	}
	for range 2 * maxBuffers {
		b.give(make([]byte, 0, 1))
	}
	n := 0
	for ; b.take() != nil; n++ {
	}
	if n != maxBuffers {
		t.Errorf("memory of %d frames is kept, want of %d", n, maxBuffers)
	}
}

// The memory of a frame that has left is that of one to come, whether it was compressed or not. That of other frames is not.
func TestTheMemoryOfAFrameIsUsedAgain(t *testing.T) {
	for _, takes := range []wire.Features{0, wire.SupportsS2} {
		c := &line{features: takes, free: 100}
		ls := lined(c, host.Usual, filter.Compress{Method: filter.S2})
		o := ls.To(1)
		question := wire.Ask{Text: make([]byte, 1000)}.Frame()
		o.Push(question)
		if o.Beat(wire.Heartbeat{}); len(ls.buffers.free) != 0 || len(c.frames) != 2 || !bytes.Equal(c.frames[1], question) {
			t.Errorf("%d frames left, and the memory of %d is kept; want that of none, and that they leave as they are", len(c.frames), len(ls.buffers.free))
		}
		for range 3 {
			o.put(&wire.Record{Kind: wire.Delta, Vals: make([]float32, 1000)})
			if o.Flush(); len(ls.buffers.free) != 1 {
				t.Errorf("the memory of %d frames is kept, want of the one that left", len(ls.buffers.free))
			}
		}
	}
}

// Behind a full frame, the next has its memory at once. Behind a short one it takes what it needs.
func TestTheFrameBehindAFullOneHasRoom(t *testing.T) {
	limits := host.Usual
	limits.Frame = 1000
	for _, full := range []bool{false, true} {
		o := bounded(2, limits).To(1)
		n := 900
		if full {
			n = 1000
		}
		o.put(sized(t, n))
		o.Flush()
		first := o.next(false) // nobody gives its memory back
		o.put(ack(1))
		o.Flush()
		if room := cap(o.next(false)); (room >= len(first)*5/4) != full || len(first) < 900 {
			t.Errorf("behind a frame of %d bytes the next has room for %d", len(first), room)
		}
	}
}

// An answer is owed as many bytes as it takes, whatever the records before it come to take less because it ends their run.
func TestAnAnswerBehindAListIsOwed(t *testing.T) {
	o := imagined(2).To(1)
	for k := range godwit.Key(1000) {
		o.put(&wire.Record{Kind: wire.Pull, Key: k, Op: 1, Index: uint32(k)})
	}
	if o.put(ack(1)); o.owed < 1 || o.owed > 50 || o.queued > 100 {
		t.Errorf("%d bytes are owed of one short answer, of %d that are queued", o.owed, o.queued)
	}
}

// Answers with keys that follow each other are owed as many bytes as their frame has, at the most.
func TestAFrameOwesNoMoreThanItHas(t *testing.T) {
	o := imagined(2).To(1)
	for k := range godwit.Key(1000) {
		o.put(&wire.Record{Kind: wire.Done, Key: k, Op: 1, Index: uint32(k)})
	}
	grown := o.owed
	o.seal()
	if n := len(o.sealed[0].frame); o.owed != n || grown < 2*n {
		t.Errorf("%d bytes are owed in a frame of %d, which were %d", o.owed, n, grown)
	}
	o.put(ack(1))
	if o.Take(nil); !o.Owes(0) || o.owed > 50 {
		t.Errorf("%d bytes are owed of one short answer", o.owed)
	}
}
