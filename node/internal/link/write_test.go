package link

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/transport/mem"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// writes runs the writer of a link until it waits, and then stops the node, and returns what the writer returned.
func (o *Link) writes() error {
	h := host.New(host.Real())
	over := make(chan error, 1)
	go func() { over <- o.Write(h) }()
	synctest.Wait()
	select {
	case err := <-over:
		return err
	default:
	}
	h.Halt()
	return <-over
}

// Who has put frames in sends them as far as they are few and short and the network takes them without a wait. The writer does the rest, and all
// leave once, and in order.
func TestWhatIsLongOrMuchIsLeftToTheWriter(t *testing.T) {
	drain := func(l *Link) { l.Drain(false) }
	for what, x := range map[string]struct {
		frames []int // bytes
		send   func(*Link)
		free   int // that the network takes at once
		at     int // … that leave so
	}{
		"nothing":                 {nil, (*Link).Flush, 9, 0},
		"four":                    {[]int{16, 24, 32, 40}, (*Link).Flush, 9, 4},
		"five":                    {[]int{16, 24, 32, 40, 48, 56}, (*Link).Flush, 9, 4},
		"five answers":            {[]int{16, 24, 32, 40, 48, 56}, drain, 9, 4},
		"a short one":             {[]int{inlineBytes}, (*Link).Flush, 9, 1},
		"a long one":              {[]int{16, inlineBytes + 1, 24}, (*Link).Flush, 9, 1},
		"a long answer":           {[]int{16, inlineBytes + 1, 24}, drain, 9, 3},
		"more than there is room": {[]int{16, 24, 32}, (*Link).Flush, 1, 1},
		"none that there is room": {[]int{16}, drain, 0, 0},
		"one that is posted":      {[]int{16}, (*Link).Post, 9, 0},
		"what is posted":          {[]int{16, 24}, (*Link).Post, 9, 0},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &line{free: x.free}
				o := lined(c, host.Usual, filter.Compress{}).To(1)
				for _, n := range x.frames {
					o.Push(make([]byte, n))
				}
				if len(c.frames) != 0 || o.writing {
					t.Error("a frame leaves before it is flushed")
				}
				x.send(o)
				left := len(c.frames) < len(x.frames)
				if len(c.frames) != x.at || o.writing != left || (len(o.wake) > 0) != left {
					t.Errorf("%d frames left, want %d; the writer goes on: %v", len(c.frames), x.at, o.writing)
				}
				if left { // who comes meanwhile leaves it to the writer
					o.Flush()
					o.Post()
				}
				if err := o.writes(); err != nil {
					t.Error(err)
				}
				if len(c.frames) != len(x.frames) || c.waited != len(x.frames)-x.at || o.writing || o.queued != 0 {
					t.Fatalf("%d frames left, %d of them by the writer, want %d; somebody writes: %v, %d bytes are queued", len(c.frames), c.waited, len(x.frames), o.writing, o.queued)
				}
				for i, f := range c.frames {
					if len(f) != x.frames[i] {
						t.Errorf("frame %d has %d bytes, want %d", i, len(f), x.frames[i])
					}
				}
				if n := o.Counts().Frames; n != uint64(len(x.frames)) {
					t.Errorf("%d frames count as sent, want %d", n, len(x.frames))
				}
			})
		})
	}
}

// A frame that the network did not take at once is not compressed a second time, and goes on where it was begun.
func TestTheWriterFinishesTheFrameThatWasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &line{features: wire.SupportsS2}
		o := lined(c, host.Usual, filter.Compress{Method: filter.S2}).To(1)
		for range 2 {
			o.put(&wire.Record{Kind: wire.Delta, Vals: make([]float32, 1000)})
			o.Flush()
			if o.Counts().Frames != 1 || wire.Compression(o.w.begun) != wire.SupportsS2 {
				t.Fatalf("the frame was begun: %v", o.w.begun != nil)
			}
		}
		if err := o.writes(); err != nil {
			t.Error(err)
		}
		n := o.Counts()
		if len(c.frames) != 2 || n.Frames != 2 || n.Queued != 0 || n.Bytes != uint64(len(c.frames[0])+len(c.frames[1])) {
			t.Errorf("%d frames left, and the counts are %+v; want 2", len(c.frames), n)
		}
		for i, f := range c.frames {
			if wire.Compression(f) != wire.SupportsS2 {
				t.Errorf("frame %d is not compressed", i)
			}
		}
		o.put(ack(1))
		o.Post()
		if err := o.writes(); err != nil || len(c.frames) != 3 || o.queued != 0 {
			t.Errorf("%d frames left, and %d bytes are queued, want 3: a frame that was finished leaves once more, or %v", len(c.frames), o.queued, err)
		}
	})
}

// A full frame goes to the writer, unless somebody writes already. What nobody flushed stays.
func TestAFullFrameIsHandedToTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &line{free: 9}
		ls := lined(c, host.Usual, filter.Compress{})
		o, s := ls.To(1), ls.Sender()
		for range 2 {
			if s.Send(1, &wire.Record{Kind: wire.Delta, Vals: make([]float32, host.Usual.Frame/4)}); len(o.wake) != 1 || !o.writing || len(c.frames) > 0 {
				t.Fatal("a full frame is not left to the writer")
			}
		}
		s.Send(1, ack(1))
		if err := o.writes(); err != nil {
			t.Error(err)
		}
		if len(c.frames) != 2 || o.writing || o.enc.Records() != 1 {
			t.Errorf("%d frames left, want the two full ones", len(c.frames))
		}
	})
}

// What is posted while somebody writes leaves, although it is not full. Where there is nothing, nobody is woken.
func TestWhatIsPostedLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &line{free: 9}
		o := lined(c, host.Usual, filter.Compress{}).To(1)
		if o.Post(); o.writing || len(o.wake) > 0 {
			t.Error("the writer is woken for nothing")
		}
		for i := range 2 {
			o.put(ack(i))
			o.Post()
		}
		if err := o.writes(); err != nil || len(c.frames) != 1 || o.enc.Records() > 0 || o.writing {
			t.Errorf("%d frames left, and %d records stay: %v", len(c.frames), o.enc.Records(), err)
		}
		o.writing = true
		o.put(ack(2))
		o.Post()
		o.writing = false
		if o.Drain(true); len(c.frames) != 2 {
			t.Error("what was posted while somebody wrote stays")
		}
		o.writing = true
		o.Post() // of nothing
		o.put(ack(3))
		o.writing = false
		if o.Drain(true); len(c.frames) != 2 {
			t.Error("what nobody posted leaves")
		}
	})
}

// The error of a connection ends the writer, whoever comes across it. Others are kept by it from nothing.
func TestAConnectionThatFailsEndsTheWriter(t *testing.T) {
	broken := errors.New("the cable was cut")
	for what, send := range map[string]func(*Link){"flush": (*Link).Flush, "post": (*Link).Post} {
		for free := range 2 {
			synctest.Test(t, func(t *testing.T) {
				c := &line{free: free, err: broken}
				o := lined(c, host.Usual, filter.Compress{}).To(1)
				o.put(ack(1))
				send(o)
				if err := o.writes(); err != broken {
					t.Errorf("%s: the writer ends with %v, want %v", what, err, broken)
				}
				for range 3 {
					o.put(&wire.Record{Kind: wire.Delta, Vals: make([]float32, host.Usual.Frame/4)})
					o.Flush()
					o.Post()
					o.Drain(false)
					o.Beat(wire.Heartbeat{})
				}
				if o.Goodbye(); len(c.frames) > 0 {
					t.Errorf("%s: %d frames leave after the error", what, len(c.frames))
				}
			})
		}
	}
}

// Nobody waits for a network that is full but the writer. What is put in meanwhile leaves in order, except that a question overtakes records.
func TestOnlyTheWriterWaitsForTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &line{full: make(chan struct{})}
		ls := lined(c, host.Usual, filter.Compress{})
		o, s, h := ls.To(1), ls.Sender(), host.New(host.Real())
		over := make(chan error, 1)
		go func() { over <- o.Write(h) }()
		s.Send(1, ack(1))
		s.Flush()
		synctest.Wait() // the writer waits for the network
		for i := range 10 {
			s.Send(1, &wire.Record{Kind: wire.Delta, Seq: uint64(i), Vals: make([]float32, host.Usual.Frame/4)})
			s.Flush()
			s.Post()
			s.Drain(false)
		}
		s.Send(1, ack(2))
		s.Flush()
		o.Push(wire.Ask{Number: 1}.Frame())
		o.Goodbye()
		if len(c.frames) > 0 || o.Room(10*host.Usual.Frame) {
			t.Errorf("%d frames left over a network that is full, and %d bytes are queued", len(c.frames), o.queued)
		}
		close(c.full)
		synctest.Wait()
		if len(c.frames) != 14 || !wire.IsAsk(c.frames[1]) || !wire.IsGoodbye(c.frames[13]) || o.queued != 0 {
			t.Fatalf("%d frames left, and %d bytes are queued; want 14, the second a question, and the last a goodbye", len(c.frames), o.queued)
		}
		d := wire.Decoder{Lists: &wire.Known{}}
		frames := slices.Concat(c.frames[:1], c.frames[2:13])
		rs := roomtest.Records(t, &d, func([]byte) (f []byte) {
			if len(frames) > 0 {
				f, frames = frames[0], frames[1:]
			}
			return f
		})
		if len(rs) != 12 || rs[0].Key != 1 || rs[11].Key != 2 {
			t.Fatalf("%d records came, want 12, and the short ones first and last", len(rs))
		}
		for i, r := range rs[1:11] {
			if r.Seq != uint64(i) {
				t.Errorf("record %d came in place %d", r.Seq, i)
			}
		}
		h.Halt()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// The writer ends when the connections are closed, also while it waits for a peer that reads nothing. The error names the peer.
func TestTheWriterEndsWithItsConnection(t *testing.T) {
	for _, nw := range []transport.Network{tcp.Network{}, &mem.Switch{}} {
		there, here := ends(t, nw, "127.0.0.1:0") // the one that dialed is node 1
		ls := New(host.New(host.Real()), 0, 2, 1, host.Usual, filter.Compress{}, host.NewBell())
		ls.Connect(1, here)
		over := make(chan error, 1)
		go func() { over <- ls.To(1).Write(ls.host) }()
		for range 40 {
			ls.To(1).Push(wire.Ask{Text: make([]byte, wire.MaxAsk)}.Frame())
		}
		ls.To(1).Post()
		ls.Close()
		if err := <-over; !errors.Is(err, godwit.ErrClosed) || !strings.Contains(err.Error(), "node 1") {
			t.Errorf("the writer ends with %v, want that the connection to node 1 was closed", err)
		}
		there.Close()
	}
}

// The writer asks for the pace of the network, and who flushes short frames does not.
func TestTheWriterMeasuresThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &told{Conn: &line{free: 1}, rate: 125e6, unsent: 5}
		ls := New(host.New(host.Real()), 0, 2, 1, host.Usual, filter.Compress{}, host.NewBell())
		ls.Connect(1, c)
		o := ls.To(1)
		o.Push(make([]byte, inlineBytes))
		if o.Flush(); c.asked != 0 {
			t.Error("who flushes asks for the pace")
		}
		o.Push(make([]byte, measured-1))
		o.Push(make([]byte, 16))
		o.Post()
		if err := o.writes(); err != nil || c.asked != 1 || o.pace.each != 8 || o.unsent != 5 {
			t.Errorf("the pace was asked for %d times, and a byte takes %v ns, want once, and 8: %v", c.asked, o.pace.each, err)
		}
	})
}
