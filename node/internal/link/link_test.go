package link

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/node/internal/roomtest"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/transport/mem"
	"github.com/godwit-ps/godwit/transport/tcp"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

// secret is that of connections without nodes.
var secret = []byte("what only members know")

// put appends a record.
func (o *Link) put(r *wire.Record) {
	o.mu.Lock()
	full := o.add(r)
	idle := full && o.claim()
	o.mu.Unlock()
	if full {
		o.filled(idle)
	}
}

// connected returns a link over a connection.
func connected(c transport.Conn) *Link {
	ls := New(host.New(host.Real()), 0, 2, 1, host.Usual, filter.Compress{}, host.NewBell())
	ls.Connect(1, c)
	return ls.To(1)
}

// imagined returns links of node 0 of several whose frames nobody takes.
func imagined(nodes int) *Links {
	ls := New(host.New(host.Real()), 0, nodes, 1, host.Usual, filter.Compress{}, host.NewBell())
	for i := 1; i < nodes; i++ {
		ls.Imagine(godwit.NodeID(i), func() {})
	}
	return ls
}

// ends connects two ends of a network.
func ends(t *testing.T, nw transport.Network, addr string) (here, there transport.Conn) {
	ctx := roomtest.Background(t)
	l, err := nw.Listen(addr)
	roomtest.Must(t, err)
	t.Cleanup(func() { l.Close() })
	dialed := make(chan transport.Conn, 1)
	go func() {
		c, err := nw.Dial(ctx, l.Addr(), wire.Hello{From: 1}, secret)
		if err != nil {
			t.Error(err)
		}
		dialed <- c
	}()
	there, err = l.Accept(ctx, wire.Hello{}, secret)
	roomtest.Must(t, err)
	if here = <-dialed; here == nil {
		t.FailNow()
	}
	closeBoth := func() { here.Close(); there.Close() }
	t.Cleanup(closeBoth)
	context.AfterFunc(ctx, closeBoth) // who waits for ever fails
	return here, there
}

// Whether a frame is sent by who filled it, by the writer, or begun by one and
// finished by the other: records arrive once and in the order in which they
// were put in, without anybody asking a second time, and the queue is empty then.
func TestRecordsLeaveInOrderWhoeverSendsThem(t *testing.T) {
	const records = 12_000
	for _, x := range []struct {
		name      string
		nw        transport.Network
		producers int
		often     int // one of so many records
		floats    int // … has up to so many floats
		post      int // so many of 4 sends are left to the writer
		every     int // one of so many records is followed by a send
	}{
		{"small and large frames over tcp", tcp.Network{}, 4, 20, 20_000, 2, 2},
		{"small and large frames in memory", &mem.Switch{}, 4, 20, 20_000, 2, 2},
		{"until the network is full, over tcp", tcp.Network{}, 1, 1, 2000, 0, 1},
		{"until the network is full, in memory", &mem.Switch{}, 1, 1, 2000, 0, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			here, there := ends(t, x.nw, "127.0.0.1:0")
			o := connected(here)
			h := host.New(host.Real())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer h.Halt()
			wg.Go(func() {
				if err := o.Write(h); err != nil {
					t.Error(err)
				}
			})
			count := records / x.producers
			for p := range x.producers {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(*roomtest.Seed, uint64(p)))
					for i := range count {
						r := wire.Record{Kind: wire.Delta, Key: godwit.Key(p), Seq: uint64(i)}
						if rng.IntN(x.often) == 0 {
							r.Vals = make([]float32, rng.IntN(x.floats))
						}
						o.put(&r)
						switch {
						case i < count-1 && rng.IntN(x.every) > 0:
						case rng.IntN(4) < x.post:
							o.Post()
						case rng.IntN(3) == 0:
							o.Drain(i < count-1 && rng.IntN(2) == 0)
						default:
							o.Flush()
						}
					}
				})
			}
			roomtest.Eventually(t, "the network is full", func() bool { return !o.Room(4 << 20) })
			roomtest.Must(t, takeAll(there, x.producers, count))
			roomtest.Eventually(t, "the queue is empty", func() bool {
				o.mu.Lock()
				defer o.mu.Unlock()
				return o.queued == 0 && !o.writing
			})
		})
	}
}

// Who drains sends full frames itself, however long: the link has no writer here. The frame
// that is being filled stays there until all is to be sent.
func TestWhoDrainsSendsFullFramesItself(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		here, there := ends(t, tcp.Network{}, "127.0.0.1:0")
		ls := New(host.New(host.Real()), 0, 2, 1, host.Usual, filter.Compress{}, host.NewBell())
		ls.Connect(1, here)
		o, s := ls.To(1), ls.Drains()
		count := host.Usual.Frame/4000 + 10
		for i := range count {
			s.Send(1, &wire.Record{Kind: wire.Delta, Seq: uint64(i), Vals: make([]float32, 1000)})
			if o.writing {
				t.Fatal("a sender that drains left a frame to the writer")
			}
		}
		frames := func() int { return int(o.Counts().Frames) }
		if frames() != 0 {
			t.Error("a frame left while records were put in")
		}
		if wanted { // by who comes while another one writes
			o.writing = true
			o.Flush()
			o.writing = false
		}
		s.Drain(true)
		want := 1
		if wanted {
			want = 2
		}
		if frames() != want {
			t.Errorf("%d frames left of one that is full and one that is not (wanted: %v), want %d", frames(), wanted, want)
		}
		s.Drain(true)
		s.Drain(false)
		if frames() != 2 || o.writing || o.queued != 0 {
			t.Errorf("%d frames left, %d bytes are queued; want 2, and 0", frames(), o.queued)
		}
		roomtest.Must(t, takeAll(there, 1, count))
	}
}

// While somebody writes, what others put in waits for a flush of theirs, if it is short: it would leave in many frames.
func TestWhatNobodyFlushesIsJoined(t *testing.T) {
	o := imagined(2).To(1)
	put := func(bytes int) {
		for before := o.queued; o.queued < before+bytes; {
			o.put(&wire.Record{Kind: wire.Delta, Vals: make([]float32, 100)})
		}
	}
	for i, x := range []struct {
		bytes  int
		flush  bool
		leaves bool
	}{{1, false, false}, {1, true, true}, {1, false, false}, {joinBytes / 2, false, false}, {joinBytes / 2, false, true}, {1, false, false},
		{1, true, true}, {1, false, false}} {
		if put(x.bytes); x.flush {
			o.Flush()
		}
		if f := o.Take(nil); len(f) > 0 != x.leaves || x.leaves && o.queued > 0 {
			t.Errorf("step %d: a frame of %d bytes left, %d bytes are queued; want that one leaves: %v", i, len(f), o.queued, x.leaves)
		}
	}
	o.Flush()
	put(host.Usual.Frame) // the flush was of what is in the full frame
	if o.enc.Records() == 0 {
		put(1)
	}
	if len(o.Take(nil)) < host.Usual.Frame || o.enc.Records() == 0 || len(o.Take(nil)) > 0 {
		t.Errorf("behind a full frame that was flushed, %d records are left, which nobody flushed", o.enc.Records())
	}
}

// A question or an answer that somebody waits for does not wait behind records, and keeps its place among others; a goodbye is the last.
func TestQuestionsAndAnswersOvertakeRecords(t *testing.T) {
	o := imagined(2).To(1)
	o.put(&wire.Record{Kind: wire.Delta, Vals: make([]float32, host.Usual.Frame/4)}) // a frame that is full
	o.put(&wire.Record{Kind: wire.Delta, Vals: make([]float32, 1)})
	frame := func(n uint64) []byte { return wire.Ask{Number: n, Text: []byte("?")}.Frame() }
	o.Push(frame(1))
	o.Answer(frame(2))
	o.Flush()
	if x, err := wire.ParseAsk(o.Take(nil)); err != nil || x.Number != 1 {
		t.Fatalf("first came %v, %v; want question 1", x, err)
	}
	o.Push(frame(3))
	o.Goodbye()
	o.Push(frame(4))
	for n := uint64(2); n <= 4; n++ {
		if x, err := wire.ParseAsk(o.Take(nil)); err != nil || x.Number != n {
			t.Fatalf("then came %v, %v; want question %d", x, err, n)
		}
	}
	if f := o.Take(nil); len(f) < host.Usual.Frame {
		t.Errorf("behind the questions came a frame of %d bytes, want the records", len(f))
	}
	o.Push(frame(5)) // also when none waits any more
	if x, err := wire.ParseAsk(o.Take(nil)); err != nil || x.Number != 5 {
		t.Errorf("before the other record came %v, %v; want question 5", x, err)
	}
	if f := o.Take(nil); !wire.IsData(f) {
		t.Errorf("then came %q, want the other record", f)
	}
	if f := o.Take(nil); !wire.IsGoodbye(f) || len(o.Take(nil)) > 0 || o.queued != 0 || o.owed != 0 {
		t.Errorf("last came %q, and %d bytes are queued, %d of them owed; want a goodbye", f, o.queued, o.owed)
	}
}

// takeAll reads what the producers have sent, which is numbered.
func takeAll(c transport.Conn, producers, count int) error {
	next := make([]uint64, producers)
	for got := 0; got < producers*count; {
		frame, err := c.ReadFrame()
		if err != nil {
			return err
		}
		var d wire.Decoder
		if err := d.Reset(frame); err != nil {
			return err
		}
		for {
			var r wire.Record
			ok, err := d.Next(&r)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if r.Seq != next[r.Key] {
				return fmt.Errorf("-seed %d: record %d of producer %d came, want %d", *roomtest.Seed, r.Seq, r.Key, next[r.Key])
			}
			next[r.Key]++
			got++
		}
	}
	return nil
}

// Keys that follow each other take fewer bytes in the frame than while it grew.
func TestTheQueueIsEmptyWhenConsecutiveKeysHaveLeft(t *testing.T) {
	o := imagined(2).To(1)
	for k := range godwit.Key(1000) {
		o.put(&wire.Record{Kind: wire.Pull, Key: k, Op: 1, Index: uint32(k)})
	}
	if grown := o.queued; grown < 1000 {
		t.Fatalf("%d bytes are queued: the keys took none", grown)
	}
	o.Flush()
	if n := len(o.Take(nil)); n > 100 {
		t.Errorf("the frame has %d bytes", n)
	}
	if o.queued != 0 {
		t.Errorf("%d bytes are left in an empty queue", o.queued)
	}
}

// Two senders that keep queues, and look for room in the other's, do not wait for
// each other.
func TestSendersThatKeepQueuesLookAtOthers(t *testing.T) {
	ls := imagined(3)
	look := map[string]func(*Sender, godwit.NodeID) bool{"for copies": (*Sender).Room, "for answers": (*Sender).Takes}
	for what, has := range look {
		over := make(chan bool, 2)
		var senders [2]Sender
		for i := range senders {
			senders[i] = ls.Sender()
			senders[i].Keep()
			senders[i].Send(godwit.NodeID(1+i), &wire.Record{Kind: wire.Drained, Key: 1})
			if senders[i].kept == nil {
				t.Fatal("the sender keeps no queue: the test is vacuous")
			}
		}
		for i := range senders {
			go func() {
				ok := has(&senders[i], godwit.NodeID(2-i))
				senders[i].Release()
				over <- ok
			}()
		}
		for range senders {
			select {
			case ok := <-over:
				if !ok {
					t.Errorf("%s: there is room, and the sender hears of none", what)
				}
			case <-time.After(roomtest.Patience):
				t.Fatalf("%s: the senders wait for each other", what)
			}
		}
	}
}

func TestWhoTakesNoListsGetsNone(t *testing.T) {
	here, _ := ends(t, &mem.Switch{}, "a")
	o := connected(here) // hellos of this test say nothing of lists
	if o.enc.Lists != nil || !o.enc.Plain {
		t.Error("a peer that takes neither lists nor codings gets them")
	}
}
